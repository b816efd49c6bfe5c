"""Compiled searches over files of retained objects.

- `index`: build postings lists, cells and term counts
- `cell_ranges`: a region as ranges of rows in cell order
- `find`: find rows by region, words and time, or those nearest to a point
- `score`: score one row for one search
- `score_layers`: pages of rows with score bounds
- `relevant`: find the rows with the highest scores, for one search
- `best_of_rows`: find the best objects of the window for many subscriptions at once
"""
