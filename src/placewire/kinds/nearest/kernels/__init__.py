"""Compiled parts of the kind `nearest`.

- `match`: the objects of a block that may enter results
- `top_k`: keep the k best candidates of each row, by seq
"""
