"""Spark packages of formats that are not built in, by Maven coordinates."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import __version__
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from placewire.model.errors import Unusable

# The newest version; it works with Spark 4.3: docs/decisions/0013-kafka.md.
KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
PACKAGES = {"kafka": KAFKA_PACKAGE}
LINKAGE_ERRORS = (
    "NoSuchMethodError",
    "NoClassDefFoundError",
    "NoSuchFieldError",
    "AbstractMethodError",
)


def require_format(session: SparkSession, name: str) -> None:
    """Raise Unusable if a session does not support a format."""
    try:
        conf = session._jsparkSession.sessionState().conf()
        sources = session._jvm.org.apache.spark.sql.execution.datasources.DataSource
        sources.lookupDataSource(name, conf)
    except (PySparkException, Py4JError):
        raise Unusable(
            f"format {name}: Spark lacks its package; start the session with"
            f" spark.jars.packages={PACKAGES[name]}"
        ) from None


@contextlib.contextmanager
def check_package_fit(name: str) -> Iterator[None]:
    """Turn linkage errors of a package for another Spark version into Unusable."""
    try:
        yield
    except Py4JJavaError as error:
        kind = str(error.java_exception.getClass().getSimpleName())
        if kind not in LINKAGE_ERRORS:
            raise
        raise Unusable(
            f"format {name}: its package does not fit Spark {__version__}: {kind}:"
            f" {error.java_exception.getMessage()}"
        ) from None
