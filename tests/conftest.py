"""What tests share: one Spark session for all of them, since a start costs seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pyspark.sql import SparkSession

from kafka_jars import find_jars
from placewire.spark.session import make_session
from postgres_server import PostgresServer, find_binaries


@pytest.fixture(scope="session", autouse=True)
def no_waits_for_the_disk() -> Iterator[None]:
    """No test cuts the power: what a process has written, another one reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(os, "fdatasync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_keys_of_this_machine() -> Iterator[None]:
    """Stores get the keys that a test gives, and no process looks for others."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
            patch.setenv(name, os.devnull)
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with two cores, as on the smallest machine; with Kafka where it is."""
    jars = ",".join(map(str, find_jars("connector")))
    session = make_session("local[2]", more={"spark.jars": jars} if jars else None)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, which a test may stop if it starts it again."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed: no initdb on the path")
    with TemporaryDirectory(prefix="placewire-postgres-", ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)  # it runs as another user
        server = PostgresServer(Path(name) / "server", binaries)
        server.start()
        yield server
        server.stop()
