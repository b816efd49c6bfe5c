"""The kind `nearest`: the k nearest objects that share words with the subscription.

The k-th distance is a row's threshold: a circle that only shrinks. Workers find objects inside it;
settling applies them in order of seq.

- `kind`: the protocol, with the fields of events; shorter batches while circles are large
- `rows`: the columns of rows by name
- `index`: postings of circles by term and cell
- `match`: find candidates in the circles of the last commit
- `settle`: apply candidates to results, and start rows that began in the batch
- `results`: the k nearest objects of each row, and what changed in a batch
- `answer`: answer snapshot queries
- `explain`: explain a pair of object and subscription
- `kernels`: the compiled parts
"""
