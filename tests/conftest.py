"""What all tiers share: the Hypothesis profile, the environment, and fixtures that start servers.

Fixtures import what they start, so that a test that needs no Spark imports no Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from profiles import PROFILE, load_profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postgres_server import PostgresServer

SLOW_TIERS = {Path(__file__).parent / "processes", Path(__file__).parent / "bench"}

load_profile()


def pytest_report_header() -> str:
    return f"Hypothesis profile: {PROFILE} (PLACEWIRE_TESTS=quick|thorough)"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of the slow tiers, and run tests of Spark first: they take longest."""
    for item in items:
        if SLOW_TIERS.intersection(item.path.parents):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not uses_spark(item.nodeid))


def uses_spark(nodeid: str) -> bool:
    return nodeid.startswith("tests/spark/") or "::test_spark[" in nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file in one process, and in the quick profile all tests of Spark.

    A second Spark session would take longer to start than the few quick tests take to run.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if PROFILE == "quick" and uses_spark(nodeid):
                return "spark"
            return nodeid.partition("::")[0]

    return ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def no_waits_for_the_disk() -> Iterator[None]:
    """Skip fsync: no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(os, "fdatasync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_keys_of_this_machine() -> Iterator[None]:
    """Hide the machine's AWS keys: object stores get only the keys that a test gives."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
            patch.setenv(name, os.devnull)
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with two cores, as on the smallest machine; with Kafka if its jars exist."""
    from kafka_jars import find_jars
    from placewire.spark.session import make_session

    jars = ",".join(map(str, find_jars("connector")))
    session = make_session("local[2]", more={"spark.jars": jars} if jars else None)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server. A test that stops it starts it again."""
    from postgres_server import PostgresServer, find_binaries

    binaries = find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed: no initdb on the path")
    with TemporaryDirectory(prefix="placewire-postgres-", ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)  # it runs as another user
        server = PostgresServer(Path(name) / "server", binaries)
        server.start()
        yield server
        server.stop()


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URI of a folder in a bucket, with its keys; put the folder's name in."""
    from s3_server import serve_bucket

    with serve_bucket(tmp_path_factory.mktemp("s3") / "log") as uri:
        yield uri
