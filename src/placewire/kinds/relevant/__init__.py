"""The kind `relevant`: the k objects of the sliding window with the highest scores.

Each row holds a buffer of more than k objects and a threshold. Workers find objects that score
above it. When the window slides and a buffer runs short, it is refilled from retained objects.

- `kind`: the protocol, with the fields of events
- `rows`: the columns of rows by name
- `index`: postings by term, cell and group of similar alpha
- `match`: find candidates that reach the thresholds of the last commit
- `settle`: slide the window past the rows event by event and refill buffers that run short
- `refill`: find the best objects of the window for rows that run short or begin
- `results`: the buffer of each row, how large it should be, and what changed in a batch
- `answer`: answer snapshot queries
- `explain`: explain a pair of object and subscription
- `kernels`: the compiled parts; `kernels/window` detects that a row runs short
"""
