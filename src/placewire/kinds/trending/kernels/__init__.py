"""Compiled parts of the kind `trending`.

- `term_counts`: count the terms of a region, and the start counts of each group of due rows
- `sweep`: sweep each group from due time to due time, and write its reports
"""
