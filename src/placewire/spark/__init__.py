"""Run the pipeline on Spark. Only this package imports pyspark.

- `session`: find Java and start Spark, and say why it failed
- `stages`: the steps of a batch as Spark stages, and replay of a log batch by batch
- `stream`: run batches on streaming DataFrames; results as DataFrames
- `columns`, `intake`: DataFrames to blocks with a recorded order
- `match`, `parquet_files`: match two tables in one job
- `config`, `runner`, `lag`: `placewire run`: its file, its loop, how far it is behind
- `kafka`: topics as sources and sinks
- `datasource`: logs, results and Delta tables as Spark sources
"""
