"""Hierarchical cells: the world as a quadtree in longitude and latitude, codes on a Z-curve.

A cell of level `l` is one of 2^l x 2^l equal parts of [-180, 180] x [-90, 90]; its code interleaves
the column and row bits. The code of a point at `MAX_LEVEL` shifted right by 2 bits a level is the
code of the cell that contains it, so points sorted by code are sorted by cell at every level.
Columns and rows are monotone in the coordinate, so a point inside a box always falls between the
columns and rows of the box's corners; rounding needs no special care.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel

MAX_LEVEL = 16
SIDE = 1 << MAX_LEVEL


@subkernel
def fine_column_of_lon(lon: float) -> int:
    """Return the longitude as a fixed-point number of 32 bits; its top bits are the column."""
    x = np.int64((lon + 180.0) * (4294967296.0 / 360.0))
    return min(max(x, np.int64(0)), np.int64(0xFFFFFFFF))


@subkernel
def fine_row_of_lat(lat: float) -> int:
    """Return the latitude as a fixed-point number of 32 bits; its top bits are the row."""
    y = np.int64((lat + 90.0) * (4294967296.0 / 180.0))
    return min(max(y, np.int64(0)), np.int64(0xFFFFFFFF))


@subkernel
def column_of_lon(lon: float) -> int:
    """Return the column of a longitude at MAX_LEVEL; 180 itself belongs to the last column."""
    return fine_column_of_lon(lon) >> (32 - MAX_LEVEL)


@subkernel
def row_of_lat(lat: float) -> int:
    """Return the row of a latitude at MAX_LEVEL; 90 itself belongs to the last row."""
    return fine_row_of_lat(lat) >> (32 - MAX_LEVEL)


@subkernel
def place_in_cell(fine: int, level: int) -> int:
    """The position of a fixed-point coordinate in its cell of `level`: 1..65534, monotone."""
    within = ((fine << level) & 0xFFFFFFFF) >> 16
    return 1 + ((within * 65534) >> 16)


@subkernel
def spread_bits(value: int) -> int:
    """Spread the 16 bits of `value` to the even bits of a 32-bit word."""
    v = np.uint64(value)
    v = (v | (v << np.uint64(8))) & np.uint64(0x00FF00FF)
    v = (v | (v << np.uint64(4))) & np.uint64(0x0F0F0F0F)
    v = (v | (v << np.uint64(2))) & np.uint64(0x33333333)
    v = (v | (v << np.uint64(1))) & np.uint64(0x55555555)
    return np.int64(v)


@subkernel
def gather_bits(code: int) -> int:
    """Gather the even bits of a 32-bit word: the inverse of `spread_bits`."""
    v = np.uint64(code) & np.uint64(0x55555555)
    v = (v | (v >> np.uint64(1))) & np.uint64(0x33333333)
    v = (v | (v >> np.uint64(2))) & np.uint64(0x0F0F0F0F)
    v = (v | (v >> np.uint64(4))) & np.uint64(0x00FF00FF)
    v = (v | (v >> np.uint64(8))) & np.uint64(0x0000FFFF)
    return np.int64(v)


@subkernel
def code_of_point(lon: float, lat: float) -> int:
    """Return the code of a point at MAX_LEVEL."""
    return spread_bits(column_of_lon(lon)) | (spread_bits(row_of_lat(lat)) << 1)


@kernel
def points_to_codes(lons: np.ndarray, lats: np.ndarray) -> np.ndarray:
    """Return the codes u32[n] at MAX_LEVEL of points f64[n], f64[n]."""
    codes = np.empty(lons.size, np.uint32)
    for i in range(lons.size):
        codes[i] = np.uint32(code_of_point(lons[i], lats[i]))
    return codes


@kernel
def codes_to_columns_rows(codes: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """Return the columns i32[n] and rows i32[n] at MAX_LEVEL of codes u32[n]."""
    columns = np.empty(codes.size, np.int32)
    rows = np.empty(codes.size, np.int32)
    for i in range(codes.size):
        columns[i] = gather_bits(codes[i])
        rows[i] = gather_bits(np.int64(codes[i]) >> 1)
    return columns, rows


@kernel
def codes_to_points(codes: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """The centres of the cells of codes u32[n] at MAX_LEVEL: longitudes, latitudes f64[n]."""
    lons = np.empty(codes.size, np.float64)
    lats = np.empty(codes.size, np.float64)
    for i in range(codes.size):
        lons[i] = (gather_bits(codes[i]) + 0.5) * (360.0 / SIDE) - 180.0
        lats[i] = (gather_bits(np.int64(codes[i]) >> 1) + 0.5) * (180.0 / SIDE) - 90.0
    return lons, lats


@kernel
def boxes_to_ranges(boxes: np.ndarray) -> np.ndarray:
    """Cell ranges i32[n, 4] (first column, first row, last column, last row) of boxes f64[n, 4].

    Boxes are west, south, east, north; one that crosses the antimeridian keeps first > last column.
    """
    ranges = np.empty((boxes.shape[0], 4), np.int32)
    for i in range(boxes.shape[0]):
        ranges[i, 0] = column_of_lon(boxes[i, 0])
        ranges[i, 1] = row_of_lat(boxes[i, 1])
        ranges[i, 2] = column_of_lon(boxes[i, 2])
        ranges[i, 3] = row_of_lat(boxes[i, 3])
        if boxes[i, 0] > boxes[i, 2] and ranges[i, 0] <= ranges[i, 2]:
            # Both ends are in one column and the box wraps round the world: take every column.
            ranges[i, 0] = 0
            ranges[i, 2] = SIDE - 1
    return ranges


@kernel
def ranges_coarsened(ranges: np.ndarray, shift: int) -> np.ndarray:
    """Convert ranges i32[n, 4] to cells that are 2^shift times as wide and high.

    A range that wraps round the world to the column where it began becomes every column.
    """
    coarse = ranges >> shift
    last = (SIDE >> shift) - 1
    for i in range(ranges.shape[0]):
        if ranges[i, 0] > ranges[i, 2] and coarse[i, 0] <= coarse[i, 2]:
            coarse[i, 0] = 0
            coarse[i, 2] = last
    return coarse


@subkernel
def range_overlaps_cell(ranges: np.ndarray, i: int, level: int, column: int, row: int) -> bool:
    """Return true if the cell range of row `i` overlaps the cell at `level`, `column`, `row`."""
    shift = MAX_LEVEL - level
    if row < (ranges[i, 1] >> shift) or row > (ranges[i, 3] >> shift):
        return False
    first = ranges[i, 0] >> shift
    last = ranges[i, 2] >> shift
    if ranges[i, 0] <= ranges[i, 2]:
        return bool(first <= column <= last)
    return bool(column >= first or column <= last)


@kernel
def ranges_finest_levels(ranges: np.ndarray, levels: np.ndarray, most_cells: int) -> np.ndarray:
    """For each range the finest of the ascending `levels` at which it has <= `most_cells`."""
    finest = np.zeros(ranges.shape[0], np.int8)
    for i in range(ranges.shape[0]):
        for level in levels:
            shift = MAX_LEVEL - level
            rows = (ranges[i, 3] >> shift) - (ranges[i, 1] >> shift) + 1
            columns = (ranges[i, 2] >> shift) - (ranges[i, 0] >> shift) + 1
            if ranges[i, 0] > ranges[i, 2]:
                columns += 1 << level
            if rows * columns > most_cells:
                break
            finest[i] = level
    return finest
