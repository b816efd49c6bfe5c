"""End to end on Spark `local[2]`: Placewire, Spark SQL and the pass-through, in one session."""

from __future__ import annotations

from bench.peers import passthrough, spark_sql
from bench.pipeline import make_standing, run_pipeline
from bench.settings import Choice
from bench.tables import save_table
from bench.workload import write_objects_log, write_objects_parquet
from placewire.spark.session import make_session


def run(choice: Choice) -> None:
    """Objects/s from files to a counting sink, every match in a committed file."""
    session = make_session("local[2]")
    rows = []
    for subscriptions, objects, peer_objects in (
        (100_000, 3_000_000, 200_000),
        (1_000_000, 3_000_000, 50_000),
    ):
        workload = choice.workload(objects, subscriptions)
        small = workload._replace(objects=workload.objects.slice(0, peer_objects))
        bare = passthrough.run(workload, session, repeats=3)
        sql = spark_sql.run(small, session, repeats=2)
        standing = make_standing(workload, choice.folder)
        parquet, log = choice.folder / "objects.parquet", choice.folder / "objects.jsonl"
        write_objects_parquet(workload, parquet)
        write_objects_log(workload, log)

        found = [
            ("pass-through", bare.objects_per_s, 0.0),
            ("Spark SQL", sql.objects_per_s, sql.matches / peer_objects),
        ]
        for name, path, source, plan in (
            ("Placewire, Parquet", parquet, "parquet", "shared"),
            ("Placewire, JSON Lines", log, "jsonl", "shared"),
            ("Placewire, Parquet, plan grid", parquet, "parquet", "grid"),
        ):
            best = max(
                (
                    run_pipeline(session, standing, path, source_format=source, plan=plan)
                    for _ in range(2)
                ),
                key=lambda r: r.objects_per_s,
            )
            found.append((name, best.objects_per_s, best.matches / objects))
        for name, rate, matches in found:
            rows.append(
                (
                    f"{subscriptions:,}: {name}",
                    rate,
                    matches,
                    rate / sql.objects_per_s,
                    rate / bare.objects_per_s,
                )
            )
    session.stop()
    save_table(
        "throughput",
        (
            "subscriptions: engine",
            "objects/s",
            "matches an object",
            "times Spark SQL",
            "of pass-through",
        ),
        rows,
    )
