"""Compiled parts of the kind `trending`.

- `first_counts`: what each group counts at its first due time, and which objects come and go
- `sweep`: sweep each group from due time to due time, and print its reports
"""
