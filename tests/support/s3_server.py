"""A server that does as S3 does, for tests: in a process of its own, with one bucket."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from pyarrow import fs

from ports import free_port

PATIENCE_S = 60.0
KEY, SECRET = "test-key", "open/sesame+1"  # as keys of S3 often are: not fit for a URI as it is
BUCKET = "wire"


@contextmanager
def serve_bucket(log: Path) -> Iterator[str]:
    """The server with its bucket: a URI that has all one needs, with NAME in the place of a folder.

    Whoever has no keys may write and list there, but not read. What it says goes to the file `log`.
    """
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    options = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    keys = f"{KEY}:{quote(SECRET, safe='')}"
    with open(log, "wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            make_bucket(f"s3://{keys}@{BUCKET}?{options}&allow_bucket_creation=true", process, log)
            yield f"s3://{keys}@{BUCKET}/NAME?{options}"
        finally:
            process.kill()


def make_bucket(uri: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Make the bucket as soon as the server answers."""
    system, bucket = fs.FileSystem.from_uri(uri)
    waits = time.monotonic() + PATIENCE_S
    while True:
        try:
            return system.create_dir(bucket)
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < waits, log.read_text()
            time.sleep(0.2)


def without_keys(uri: str) -> str:
    """The URI for those who have keys from elsewhere, or none."""
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('@')[2]}"
