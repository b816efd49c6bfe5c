"""Compiled functions that several packages share; kernels of one package live in that package.

`jit.py` has the decorators, and no other module imports numba. `json/` reads and writes lines,
`text/` hashes terms and finds words, `space/` tests points and regions.
"""
