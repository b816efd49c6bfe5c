"""Run the pipeline on Spark. Only this package imports pyspark.

- `session`, `java`: start Spark, and say why it failed
- `replay`: replay a log; each trigger of a streaming query runs one batch
- `stages`: the steps of a batch as Spark stages
- `stream`: run batches on streaming DataFrames; results as DataFrames
- `columns`, `intake`: DataFrames to blocks with a recorded order
- `match`, `parquet_files`: match two tables in one job
- `config`, `runner`, `lag`: `placewire run`: its file, its loop, how far it is behind
- `kafka`, `delta_source`: topics and Delta tables
- `datasource`: logs and results as the Spark format `placewire`
"""
