"""Run the pipeline on Spark. Only this package imports pyspark.

- `session`, `java`, `packages`: start Spark
- `replay`: replay a log; each trigger of a streaming query runs one batch
- `stages`: the steps of a batch as Spark stages
- `stream`: run batches on streaming DataFrames
- `columns`, `intake`: DataFrames to blocks with a recorded order
- `match`, `parquet_files`: match two tables in one job
- `config`, `runner`: `placewire run`, its file and its loop
- `sources`, `kafka`, `delta_source`: streaming sources
- `sinks`: results as DataFrames
- `datasource`: logs and results as the Spark format `placewire`
- `lag`, `failures`: how far a run is behind, and why it failed
"""
