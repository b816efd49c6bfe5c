"""Geometry on arrays: cells, exact tests of regions, circles and space-filling curves.

- `regions`: test exactly whether a box, circle or polygon contains a point
- `cells`: the quadtree of cells; cell codes, and the cells that a box overlaps
- `circles`: bound circles by boxes and chords, for `nearest` and `relevant` subscriptions
- `z_curve`: sort points along a fine Z-order curve, and find those in a rectangle
"""
