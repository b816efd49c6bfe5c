"""The kind `trending`: reports of the most frequent terms of a region, at regular times.

Objects are not matched with rows, so there is no index. Reports count retained objects.

- `kind`: the protocol, with the fields of events
- `rows`: the times of rows by name
- `due`: find the rows that report in a batch, and group them by region and window
- `settle`: make the reports of a batch
- `answer`: answer queries
- `explain`: explain in which reports an object counts
- `kernels`: the compiled parts
"""
