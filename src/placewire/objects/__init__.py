"""Retain objects: store them, index them, search them.

Snapshot queries, reports of frequent terms and refills of relevant results read from here.

- `retain`: convert a block's objects to the form that the store keeps
- `store`: the files of retained objects, merged and dropped by time slice
- `index`: the index of one file: postings lists, cells, term counts
- `sections`: open files for a search, limited to a range of times and seqs
- `score_layers`: an index of one file by norm, built when relevance searches make it worthwhile
- `window`: the sliding window, and how it moves through a batch
- `archive`: write objects that leave the store to Parquet files
- `kernels`: the compiled parts
"""
