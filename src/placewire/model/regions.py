"""Read the regions of events into a kind, a bounding box and a shape."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from placewire.model.errors import InvalidEvent

EVERYWHERE = 0
BOX = 1
CIRCLE = 2
POLYGON = 3
WORLD = (-180.0, -90.0, 180.0, 90.0)
EARTH_RADIUS_M = 6_371_008.8
PADDING_DEG = 1e-6


class Region(NamedTuple):
    """One region: for a box `box` is the region itself, for the others its bounding box."""

    kind: int
    box: tuple[float, float, float, float]
    shape: tuple[float, ...]


WHOLE_WORLD = Region(EVERYWHERE, WORLD, ())


def read_region(value: Any) -> Region:
    """Return the region of a decoded `region` field; raises InvalidEvent."""
    if not isinstance(value, dict) or len(value) != 1:
        raise InvalidEvent(
            f"region: must have exactly one of box, circle, polygon, got {describe(value)}"
        )
    ((form, body),) = value.items()
    if form == "box":
        return read_box(body)
    if form == "circle":
        return read_circle(body)
    if form == "polygon":
        return read_polygon(body)
    raise InvalidEvent(f"region: must be one of box, circle, polygon, got {form!r}")


def read_box(body: Any) -> Region:
    """Read `[west, south, east, north]`."""
    if not isinstance(body, list) or len(body) != 4:
        raise InvalidEvent(f"region.box: must be [west, south, east, north], got {describe(body)}")
    west, south, east, north = body
    if (
        type(west) is type(south) is type(east) is type(north) is float
        and -180.0 <= west <= 180.0
        and -180.0 <= east <= 180.0
        and -90.0 <= south <= north <= 90.0
    ):
        return Region(BOX, (west, south, east, north), ())
    west = read_degrees(body[0], 180.0, "region.box[0] (west)")
    south = read_degrees(body[1], 90.0, "region.box[1] (south)")
    east = read_degrees(body[2], 180.0, "region.box[2] (east)")
    north = read_degrees(body[3], 90.0, "region.box[3] (north)")
    if south > north:
        raise InvalidEvent(f"region.box: south must be <= north, got {south} > {north}")
    return Region(BOX, (west, south, east, north), ())


def read_circle(body: Any) -> Region:
    """Read `{"lon": .., "lat": .., "radius_m": ..}`."""
    if not isinstance(body, dict) or body.keys() != {"lon", "lat", "radius_m"}:
        raise InvalidEvent(
            f"region.circle: must have exactly lon, lat, radius_m, got {describe(body)}"
        )
    lon = read_degrees(body["lon"], 180.0, "region.circle.lon")
    lat = read_degrees(body["lat"], 90.0, "region.circle.lat")
    radius_m = read_number(body["radius_m"], "region.circle.radius_m")
    if radius_m <= 0.0:
        raise InvalidEvent(f"region.circle.radius_m: must be > 0, got {radius_m}")
    return Region(CIRCLE, circle_bounds(lon, lat, radius_m), (lon, lat, radius_m))


def circle_bounds(lon: float, lat: float, radius_m: float) -> tuple[float, float, float, float]:
    """Return a box that contains a circle; west > east if it crosses the antimeridian."""
    angle = radius_m / EARTH_RADIUS_M
    reach_deg = math.degrees(angle) + PADDING_DEG
    south, north = lat - reach_deg, lat + reach_deg
    if south <= -90.0 or north >= 90.0 or angle >= math.pi / 2.0:
        return (-180.0, max(south, -90.0), 180.0, min(north, 90.0))
    # The largest difference in longitude from the centre.
    sine = math.sin(math.radians(reach_deg)) / math.cos(math.radians(lat))
    if sine >= 1.0:
        return (-180.0, south, 180.0, north)
    lean_deg = math.degrees(math.asin(sine)) + PADDING_DEG
    west, east = lon - lean_deg, lon + lean_deg
    if lean_deg >= 180.0:
        return (-180.0, south, 180.0, north)
    if west < -180.0:
        return (west + 360.0, south, east, north)
    if east > 180.0:
        return (west, south, east - 360.0, north)
    return (west, south, east, north)


def read_polygon(body: Any) -> Region:
    """Read GeoJSON rings, the outer one first; the shape has each ring's length and coordinates."""
    if not isinstance(body, list) or not body:
        raise InvalidEvent(f"region.polygon: must be a list of rings, got {describe(body)}")
    shape: list[float] = []
    west = south = math.inf
    east = north = -math.inf
    for r, ring in enumerate(body):
        where = f"region.polygon[{r}]"
        if not isinstance(ring, list) or len(ring) < 4:
            raise InvalidEvent(f"{where}: must have 4 positions or more, got {describe(ring)}")
        shape.append(float(len(ring)))
        for p, position in enumerate(ring):
            if not isinstance(position, list) or len(position) != 2:
                raise InvalidEvent(f"{where}[{p}]: must be [lon, lat], got {describe(position)}")
            x = read_degrees(position[0], 180.0, f"{where}[{p}][0] (lon)")
            y = read_degrees(position[1], 90.0, f"{where}[{p}][1] (lat)")
            shape += (x, y)
            west, east = min(west, x), max(east, x)
            south, north = min(south, y), max(north, y)
        if shape[-2 * len(ring) : -2 * len(ring) + 2] != shape[-2:]:
            raise InvalidEvent(f"{where}: must be closed, got first {ring[0]} and last {ring[-1]}")
    return Region(POLYGON, (west, south, east, north), tuple(shape))


def read_number(value: Any, where: str) -> float:
    """Return a finite JSON number as a float; raises InvalidEvent."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
    elif isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise InvalidEvent(f"{where}: must be a finite number, got {describe(value)}")


def read_degrees(value: Any, limit: float, where: str) -> float:
    """Return a number in [-limit, limit]; raises InvalidEvent."""
    number = read_number(value, where)
    if not -limit <= number <= limit:
        raise InvalidEvent(f"{where}: must be in [-{limit:g}, {limit:g}], got {number!r}")
    return number


def describe(value: Any) -> str:
    """Return a short form of a value for an error."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        return "something nested too deeply or too long"
    return text if len(text) <= 80 else text[:77] + "..."
