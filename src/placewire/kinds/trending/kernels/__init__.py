"""Compiled parts of the kind `trending`.

- `term_counts`: count the terms of a region, and what each group of due rows counts at first
- `sweep`: sweep each group from due time to due time, and print its reports
"""
