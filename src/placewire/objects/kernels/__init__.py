"""Compiled searches over files of retained objects.

- `index`: build inverted lists, cells and term counts
- `cell_ranges`: a region as ranges of rows in cell order
- `find`: rows by region, words and time, or the nearest of them to a point
- `score`: score one row for one search
- `score_layers`: pages of rows with score bounds
- `relevant`: the rows with the highest scores, for one search
- `best_of_rows`: the best objects of the window for many subscriptions at once
"""
