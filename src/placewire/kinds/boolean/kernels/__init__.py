"""Compiled parts of the kind `boolean`.

- `postings`: build postings from rows
- `probes`: find the cells of postings that contain the objects of a block
- `match`: match a block of objects with postings, or with every row
"""
