"""Find or download jars and a Java compiler for the peers in Java, cached beside the workloads.

Jars are resolved by Maven coordinates with `mvn`. What is missing raises `Unusable`, which says how
to enable it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bench.workload import CACHE
from placewire.model.errors import Unusable

SECONDS = 1_800
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>placewire</groupId><artifactId>peers</artifactId><version>1</version>
<packaging>pom</packaging>
<dependencies>{}</dependencies>
</project>
"""
DEPENDENCY = """<dependency>
<groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
</dependency>"""


class Jdk(NamedTuple):
    """A Java with a compiler."""

    home: Path
    version: int


def write_pom(coordinates: Iterable[str]) -> str:
    """A project that depends on `group:artifact:version`s and nothing else."""
    return POM.format("".join(DEPENDENCY.format(*one.split(":")) for one in coordinates))


def fetch_jars(name: str, *coordinates: str) -> list[Path]:
    """The jars of some coordinates and all that they need, from the cache if they are there."""
    folder = CACHE / "jars" / name
    stamp = folder / "resolved.txt"
    if not (stamp.exists() and stamp.read_text() == "\n".join(coordinates)):
        maven = shutil.which("mvn")
        if maven is None:
            raise Unusable("needs Maven: put `mvn` on the path")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "pom.xml").write_text(write_pom(coordinates))
            resolve = [
                *(maven, "--batch-mode", "--quiet", "dependency:copy-dependencies"),
                *("-DincludeScope=runtime", f"-DoutputDirectory={folder}"),
                f"-Dmaven.repo.local={CACHE / 'maven'}",
            ]
            run_quietly(resolve, Path(scratch), f"Maven does not find {', '.join(coordinates)}")
        stamp.write_text("\n".join(coordinates))
    return sorted(folder.glob("*.jar"))


def run_quietly(command: list[str], folder: Path, trouble: str) -> str:
    """What a command says; raises Unusable with the first line of what went wrong."""
    try:
        return subprocess.run(
            command, cwd=folder, check=True, timeout=SECONDS, capture_output=True, text=True
        ).stdout
    except subprocess.CalledProcessError as error:
        lines = [line.strip() for line in (error.stdout + error.stderr).splitlines()]
        said = [line for line in lines if "ERROR" in line or "error" in line] or lines or [""]
        raise Unusable(f"{trouble}: {said[0][:200]}") from None
    except subprocess.TimeoutExpired:
        raise Unusable(f"{trouble}: not done after {SECONDS} s") from None
    except OSError as error:
        raise Unusable(f"{trouble}: {error}") from None


def find_jdk(least: int) -> Jdk:
    """A compiler of that version or later: of JAVA_HOME, the path, or where Linux puts them."""
    on_path = shutil.which("javac")
    homes = [Path(home) for home in (os.environ.get("JAVA_HOME"),) if home]
    homes += [Path(on_path).resolve().parent.parent] if on_path else []
    homes += sorted(Path("/usr/lib/jvm").glob("*"))
    for home in homes:
        version = version_of(home / "bin" / "javac")
        if version >= least:
            return Jdk(home, version)
    raise Unusable(f"needs a JDK of {least} or later: set JAVA_HOME")


def version_of(javac: Path) -> int:
    """The version of a compiler, 0 if there is none."""
    try:
        said = subprocess.run([str(javac), "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r"javac (\d+)", said.stdout + said.stderr)
    return int(found.group(1)) if found else 0
