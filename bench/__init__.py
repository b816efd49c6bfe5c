"""Benchmarks and experiments: `python -m bench`."""
