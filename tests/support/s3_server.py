"""A mock of S3 with one bucket, in its own process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from pyarrow import fs

from ports import free_port
from waits import until

KEY, SECRET = "test-key", "open/sesame+1"  # must be quoted in a URI, as many keys of S3
BUCKET = "wire"


@contextmanager
def serve_bucket(log: Path) -> Iterator[str]:
    """Serve a bucket and yield its URI, with keys and endpoint, and NAME in place of a folder.

    Without keys, clients may write and list but not read. The server's output goes to `log`.
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

    def made() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            system.create_dir(bucket)
        except OSError:
            return False
        return True

    until(made, "the S3 server makes a bucket")


def without_keys(uri: str) -> str:
    """Remove the keys from a URI."""
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('@')[2]}"
