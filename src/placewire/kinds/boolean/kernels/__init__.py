"""Compiled parts of the kind `boolean`.

- `postings`: build postings from rows
- `match`: match a block of objects with postings
- `scan`: match every object with every row
- `probes`: count how one object meets postings, to explain it
"""
