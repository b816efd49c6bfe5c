"""The `placewire` command line.

`main` runs it and turns errors into one line. `service_commands` and `commands` declare names,
options and help texts. The implementations are imported when a command runs:

- `serve`, `pubsub`: the service; publish, subscribe, follow results
- `demo`: `demo` and `generate`
- `replay`: `replay` and `run`
- `import_`: percolator queries and Tile38 fences
- `explain`: `explain` and `query`
- `status`: `status` and `rebalance`
- `plan`, `maps`: compare plans, and draw them
- `main`, `service_commands`, `commands`: entry point and declarations
- `options`, `output`: what commands share
- `startup`: signals, compiled kernels and the Spark session of commands that run a pipeline
"""
