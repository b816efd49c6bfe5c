"""The kind `boolean`: every object in a region whose text satisfies an expression.

A match is final once a worker finds it. Rows hold no results between batches.

- `kind`: the protocol, with the fields of events
- `index`: postings by term and cell
- `match`: match a block of objects with segments, by the index or by scanning
- `settle`: drop matches of ended rows and rejected objects, match rows that began in the batch
- `answer`: answer snapshot queries
- `explain`: explain a pair of object and subscription
- `kernels`: the compiled parts
"""
