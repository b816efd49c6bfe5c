"""Compiled functions that several packages share: arrays in, arrays out.

Kernels of one capability live with it, in `objects/kernels`, `plans/kernels` and `kinds/*/kernels`.

- `jit`: the decorators that make a kernel; the only module that imports numba
- `json`: read events from bytes and print results, without building Python objects
- `text`: text to term hashes, hash tables, sets of terms
- `space`: cells, regions, circles, the Z-curve
- `ids`: find the row of a subscription id, bitmaps of ended rows
- `blocks`: sort a block by cell, gather slices, run a block's clock
"""
