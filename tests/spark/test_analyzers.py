"""The law on Spark under every analyzer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import placewire
from analyzer_logs import sample_log
from logs import BUILT_KINDS
from oracle import replay
from reference_analyzers import ANALYZERS


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", ["cjk-bigram", "stemmed-stops"])
def test_spark_equals_oracle(name: str, spark: SparkSession, tmp_path: Path) -> None:
    table, reference = ANALYZERS[name]
    log = tmp_path / "log.jsonl"
    log.write_bytes(sample_log())
    expected = replay(log.read_bytes(), kinds=BUILT_KINDS, settings={"analyzer": reference})
    assert len(expected.results) > 300
    for rows, plan in ((200, "shared"), (150, "kdt")):
        out = tmp_path / f"{plan}.jsonl"
        placewire.replay(
            log, out, settings=table, workers=2, plan=plan, batch_rows=rows, session=spark
        )
        assert [json.loads(line) for line in out.read_bytes().splitlines()] == expected.results
