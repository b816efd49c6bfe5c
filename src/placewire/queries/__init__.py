"""Answer each snapshot query once, from retained objects.

The fields of a query are read in `ingest/queries.py`; each kind answers in `kinds/*/answer.py`.

- `answer`: answer the queries of a batch, in portions
- `snapshot`: answer queries from the latest commit, outside of any batch
"""
