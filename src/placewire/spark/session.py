"""A Spark session as Placewire likes it; everything else takes a session as an argument."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from placewire.spark.java import Java, find_java

# Without native Hadoop every checkpoint file of the default manager forks a process.
FILE_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def make_session(master: str = "local[*]", *, java: Java | None = None) -> SparkSession:
    """A quiet local session whose Python workers are this Python."""
    java = java or find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        SparkSession.builder.master(master)
        .appName("placewire")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.streaming.checkpointFileManagerClass", FILE_MANAGER)
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.streaming.minBatchesToRetain", "10")
        .config("spark.sql.streaming.metricsEnabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "64")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session
