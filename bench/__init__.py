"""Benchmarks and experiments, in packages by question.

`product` measures Placewire itself, `peers` compares it with other systems, and `papers` repeats
the experiments of the papers that it builds on. `python -m bench list` shows them all.
"""
