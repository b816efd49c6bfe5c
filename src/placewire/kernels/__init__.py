"""Compiled functions that several packages share; kernels of one package live in that package.

- `jit`: the decorators that compile kernels
- `cache`: compiled kernels on disk, found by their content
- `blocks`: the clock of a block, sorting, slices
- `bytes`: reading and writing bytes
- `ids`: chains of changes that share an id, the id directory
- `json`: read and write lines
- `text`: hash terms, find words
- `space`: test points and regions, cells
"""
