"""Cells, circles, regions and the Z-curve: tests and orders of points on the globe."""
