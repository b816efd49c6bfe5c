"""Deliver results: read the outbox of each commit and write it somewhere, exactly once.

To add a sink, implement the `Sink` protocol of `delivery`, with `delta` as the example; then add
its format to `SINK_FORMATS` in `spark/config.py`, and a branch of `open_sink` in `spark/runner.py`.

- `delivery`: the protocol of a sink, and a cursor for each
- `outbox`: results and dead letters of a commit as JSON Lines or Arrow tables
- `files`: result files, folders of files, standard output
- `delta`: a Delta table

Sinks that need a Spark session are in `spark`: `KafkaSink` (`kafka`) and `CallSink` (`stream`).
"""
