"""Draw plans and their loads as maps, with a bar for the load of each worker."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.cli.output import count_noun
from placewire.kernels.space.cells import MAX_LEVEL, codes_to_columns_rows
from placewire.plans.allocation import imbalance
from placewire.plans.cost.measures import Measures
from placewire.plans.leaves import Leaves
from placewire.plans.sample.sample import SIDE
from placewire.status import LeafLoads

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 160
LEFT, RIGHT, TOP, BOTTOM, BETWEEN = 0.75, 0.3, 0.95, 0.75, 0.55  # inches around the map
MAX_WIDTH, MAX_HEIGHT = 10.0, 8.5  # of the map
BARS_WIDTH = 1.9
FLATTEST, STEEPEST = 0.42, 1.1  # height to width of the map

MARGIN = 0.06  # of the objects' extent, on each side
TAILS = (0.001, 0.03)  # shares of the objects, at each side, that a view may omit
MUCH_SMALLER = 0.2  # if it has at most this share of the area
MIN_CELLS = 6  # plan cells across the smallest view
PALEST = 0.18  # how much colour a leaf without load keeps

STRIPE_PX, DOT_PX = 14, 3
MAX_TICKS = 24  # at the bars
INK, FAINT = "#1b1f24", "#6b7480"
LIGHTS, CHROMAS = np.array([0.82, 0.80, 0.88]), np.array([0.09, 0.095, 0.065])
OKLAB_TO_CONES = np.array(
    [
        [1.0, 0.3963377774, 0.2158037573],
        [1.0, -0.1055613458, -0.0638541728],
        [1.0, -0.0894841775, -1.2914855480],
    ]
)
CONES_TO_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


class MapView(NamedTuple):
    """The part of the world that a map shows, in degrees."""

    west: float
    south: float
    east: float
    north: float

    @property
    def area(self) -> float:
        return (self.east - self.west) * (self.north - self.south)

    @property
    def shape(self) -> float:
        """Height by width on paper: degrees of longitude shrink away from the equator."""
        shrink = max(math.cos(math.radians((self.south + self.north) / 2)), 0.3)
        return (self.north - self.south) / (self.east - self.west) / shrink


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_plan(path: Path, leaves: Leaves, measures: Measures, codes: NDArray[np.uint32]) -> None:
    """Draw the leaves in the colours of their workers, objects as dots, loads as bars."""
    lons, lats = scatter_objects(codes)
    view = find_view(lons, lats)
    page = lay_out(view)
    colours = worker_colours(leaves.workers)
    pixels = paint_leaves(leaves, view, colours, page.wide_px, page.high_px)
    the_map = page.add_map()
    shown = draw_map(the_map, view, pixels, lons, lats)
    write_title(the_map, leaves, measures, shown)
    draw_bars(page.add_bars(), measures.loads, colours, 72 * page.high)
    page.figure.savefig(path)


def draw_load_map(path: Path, loads: LeafLoads, codes: NDArray[np.uint32]) -> None:
    """Draw leaves darker the more load they have, and the load of each worker as a bar."""
    lons, lats = scatter_objects(codes)
    view = find_view(lons, lats)
    page = lay_out(view)
    colours = worker_colours(loads.leaves.workers)
    pixels = paint_leaves(loads.leaves, view, colours, page.wide_px, page.high_px)
    leaf = number_leaves(loads.leaves, view, page.wide_px, page.high_px)
    share = np.sqrt(loads.load / max(float(loads.load.max(initial=0.0)), 1e-300))
    keep = (PALEST + (1.0 - PALEST) * share)[leaf][..., None]
    pixels = keep * (0.82 * pixels) + (1.0 - keep)
    the_map = page.add_map()
    draw_map(the_map, view, pixels, lons, lats)
    title = f"{loads.leaves.name}: {count_noun(loads.leaves.total, 'leaf', 'leaves')} at"
    title += f" {count_noun(loads.leaves.workers, 'worker')}, the busiest has"
    title += f" {imbalance(loads.by_worker):.2f} x the mean load"
    the_map.set_title(title, loc="left", color=INK, fontsize=12, pad=12)
    the_map.annotate(
        "the darker, the more recent load a leaf has; dots are retained objects",
        (1, 0), (0, -34), "axes fraction", "offset points", ha="right", fontsize=9, color=INK,
    )  # fmt: skip
    draw_bars(page.add_bars(), loads.by_worker, colours, 72 * page.high)
    page.figure.savefig(path)


class MapPage(NamedTuple):
    """A figure with a map of `wide` x `high` inches and bars next to it."""

    figure: Figure
    wide: float
    high: float

    @property
    def wide_px(self) -> int:
        return round(self.wide * DPI)

    @property
    def high_px(self) -> int:
        return round(self.high * DPI)

    def add_map(self) -> Axes:
        return self._place(LEFT, self.wide)

    def add_bars(self) -> Axes:
        return self._place(LEFT + self.wide + BETWEEN, BARS_WIDTH)

    def _place(self, left: float, width: float) -> Axes:
        across, down = self.figure.get_size_inches().tolist()
        return self.figure.add_axes(
            (left / across, BOTTOM / down, width / across, self.high / down)
        )


def lay_out(view: MapView) -> MapPage:
    """Return an empty page in the shape of a view."""
    from matplotlib.figure import Figure  # without pyplot: no display and no global state

    wide = min(MAX_WIDTH, MAX_HEIGHT / view.shape)
    high = wide * view.shape
    whole = (LEFT + wide + BETWEEN + BARS_WIDTH + RIGHT, BOTTOM + high + TOP)
    return MapPage(Figure(figsize=whole, dpi=DPI, facecolor="white"), wide, high)


def worker_colours(workers: int) -> NDArray[np.float64]:
    """Return an RGB colour for each worker, f64[workers, 3], alike in lightness.

    Hues advance by the golden angle in OKLCH, whose lightness is perceptual: dark dots are
    visible on every colour.
    """
    number = np.arange(workers)
    light, chroma = LIGHTS[number % len(LIGHTS)], CHROMAS[number % len(CHROMAS)]
    hue = np.radians(240.0 + 137.508 * number)
    lab = np.stack([light, chroma * np.cos(hue), chroma * np.sin(hue)], 1)
    linear = np.clip((lab @ OKLAB_TO_CONES.T) ** 3 @ CONES_TO_RGB.T, 0.0, 1.0)
    curved = 1.055 * linear ** (1 / 2.4) - 0.055
    return np.asarray(np.where(linear > 0.0031308, curved, 12.92 * linear))


def scatter_objects(codes: NDArray[np.uint32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return longitudes and latitudes: a random point in the cell of each object."""
    columns, rows = codes_to_columns_rows(codes)
    within = np.random.default_rng(0).random((2, codes.size))
    cells = 1 << MAX_LEVEL
    return (columns + within[0]) * 360 / cells - 180, (rows + within[1]) * 180 / cells - 90


def find_view(lons: NDArray[np.float64], lats: NDArray[np.float64]) -> MapView:
    """Return a view of the objects with a margin, in a shape that fits a page, or the world."""
    if lons.size == 0:
        return MapView(-180.0, -90.0, 180.0, 90.0)
    view = enclose(lons, lats, 0.0)
    for tail in TAILS:
        core = enclose(lons, lats, tail)
        view = core if core.area < MUCH_SMALLER * view.area else view
    west, east = widen(view.west, view.east, view.shape / STEEPEST, 180.0)
    south, north = widen(view.south, view.north, FLATTEST / view.shape, 90.0)
    return MapView(west, south, east, north)


def enclose(lons: NDArray[np.float64], lats: NDArray[np.float64], outside: float) -> MapView:
    """Return a view of all but a share of the objects at each side, with a margin."""
    edges = []
    for values, least in ((lons, 360 / SIDE), (lats, 180 / SIDE)):
        low, high = np.quantile(values, [outside, 1 - outside]).tolist()
        air = max(MARGIN * (high - low), (MIN_CELLS * least - (high - low)) / 2)
        edges.append((low - air, high + air))
    return MapView(edges[0][0], edges[1][0], edges[0][1], edges[1][1])


def widen(low: float, high: float, times: float, limit: float) -> tuple[float, float]:
    """Scale an interval around its middle, if `times` is more than 1, within the limits."""
    more = max(times - 1.0, 0.0) * (high - low) / 2
    return max(low - more, -limit), min(high + more, limit)


def paint_leaves(
    leaves: Leaves, view: MapView, colours: NDArray[np.float64], wide: int, high: int
) -> NDArray[np.float64]:
    """Paint leaves in the colours of their workers: pixels f64[high, wide, 3], north up.

    A leaf that is split by text is hatched: a stripe for each part in its worker's colour. Borders
    are dark between workers and light between leaves of one worker.
    """
    leaf = number_leaves(leaves, view, wide, high)
    parts = np.diff(leaves.part_offsets)[leaf]
    along = np.add.outer(np.arange(high), np.arange(wide))
    worker = leaves.part_worker[leaves.part_offsets[leaf] + along // STRIPE_PX % parts]
    pixels: NDArray[np.float64] = colours[worker]
    blend(pixels, parts > 1, 1.0, 0.3)
    blend(pixels, (parts > 1) & (along % STRIPE_PX < 2), 1.0, 0.75)
    first = np.where(parts > 1, -1 - leaf, worker)  # leaves of several workers are all different
    blend(pixels, borders(leaf) & ~borders(first), 1.0, 0.5)
    blend(pixels, borders(first), 0.0, 0.5)
    return pixels


def number_leaves(leaves: Leaves, view: MapView, wide: int, high: int) -> NDArray[np.int64]:
    """Return the leaf at the middle of every pixel."""
    across = (leaves.box[:, [0, 2]] * (360 / SIDE) - 180 - view.west) / (view.east - view.west)
    down = (view.north + 90 - leaves.box[:, [3, 1]] * (180 / SIDE)) / (view.north - view.south)
    x = np.clip(np.ceil(across * wide - 0.5), 0, wide).astype(np.int64)
    y = np.clip(np.ceil(down * high - 0.5), 0, high).astype(np.int64)
    leaf = np.zeros((high, wide), np.int64)
    for number in np.flatnonzero((x[:, 0] < x[:, 1]) & (y[:, 0] < y[:, 1])).tolist():
        leaf[y[number, 0] : y[number, 1], x[number, 0] : x[number, 1]] = number
    return leaf


def borders(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark pixels whose number differs from the pixel to the left or above."""
    edge = np.zeros(numbers.shape, np.bool_)
    edge[1:] |= numbers[1:] != numbers[:-1]
    edge[:, 1:] |= numbers[:, 1:] != numbers[:, :-1]
    return edge


def blend(
    pixels: NDArray[np.float64], where: NDArray[np.bool_], shade: float, share: float
) -> None:
    """Mix a shade of grey into some pixels."""
    pixels[where] = (1 - share) * pixels[where] + share * shade


def draw_map(
    axes: Axes,
    view: MapView,
    pixels: NDArray[np.float64],
    lons: NDArray[np.float64],
    lats: NDArray[np.float64],
) -> int:
    """Draw painted leaves with objects on them; return how many objects are in the view."""
    axes.imshow(
        pixels,
        extent=(view.west, view.east, view.south, view.north),
        interpolation="nearest",
        aspect="auto",
    )
    places, counts = gather_dots(view, lons, lats, pixels.shape[1], pixels.shape[0])
    if counts.size:
        weight = np.log10(counts)
        few = 4_000 / counts.size
        dots = axes.scatter(
            places[:, 0],
            places[:, 1],
            s=min(max(few, 1.2), 24.0) * (1.0 + 0.7 * weight),
            color=INK,
            linewidths=0,
        )
        dots.set_alpha(np.minimum(min(max(0.1 * few, 0.22), 0.6) + 0.15 * weight, 0.8).tolist())
    axes.set(xlim=(view.west, view.east), ylim=(view.south, view.north))
    axes.set_xlabel("longitude", color=FAINT, loc="left")
    axes.set_ylabel("latitude", color=FAINT)
    axes.tick_params(colors=FAINT, labelsize=9)
    for spine in axes.spines.values():
        spine.set_color(FAINT)
    return int(counts.sum())


def gather_dots(
    view: MapView, lons: NDArray[np.float64], lats: NDArray[np.float64], wide: int, high: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Count objects on a coarse raster: places f64[n, 2] that have objects, and counts.

    One dot for each place shows density; one for each object would be all black.
    """
    west_south = np.array([view.west, view.south])
    steps = DOT_PX * np.array([view.east - view.west, view.north - view.south]) / [wide, high]
    at = np.floor((np.stack([lons, lats], 1) - west_south) / steps).astype(np.int64)
    inside = ((at >= 0) & (at < np.array([wide, high]) // DOT_PX + 1)).all(axis=1)
    places, counts = np.unique(at[inside, 0] * high + at[inside, 1], return_counts=True)
    return west_south + (np.stack(np.divmod(places, high), 1) + 0.5) * steps, counts


def draw_bars(
    axes: Axes, loads: NDArray[np.float64], colours: NDArray[np.float64], high_pt: float
) -> None:
    """Draw the load of each worker relative to the mean, as the legend of the colours too."""
    shares = loads / max(float(loads.mean()), 1e-9)
    workers = np.arange(shares.size)
    # Lines, because thousands of bars take many seconds.
    thick_pt = min(max(0.8 * high_pt / shares.size, 0.4), 36.0)
    bars = axes.hlines(workers, 0, shares, linewidths=thick_pt)
    bars.set_color(colours.tolist())
    axes.axvline(1.0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set(ylim=(shares.size - 0.5, -0.5), xlim=(0, max(1.3, 1.08 * float(shares.max()))))
    axes.set_yticks(workers[:: -(-shares.size // MAX_TICKS)])
    axes.set_title("load of each worker\n(1 = the mean)", fontsize=9, color=FAINT, loc="left")
    axes.tick_params(colors=FAINT, labelsize=9, left=False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)


def write_title(axes: Axes, leaves: Leaves, measures: Measures, inside: int) -> None:
    """Write two lines above the map and one below it."""
    split = int(np.count_nonzero(np.diff(leaves.part_offsets) > 1))
    shown = f"{count_noun(leaves.workers, 'worker')}, {count_noun(leaves.total, 'leaf', 'leaves')}"
    if split:
        shown += f", {split:,} of them split by text" if leaves.total > 1 else ", split by text"
    facts = (
        f"L_max/L_min {measures.balance:.2f}   \u00b7   copies a subscription"
        f" {measures.subscriptions_replicated:.2f}   \u00b7   copies an object"
        f" {measures.objects_replicated:.2f}   \u00b7   objects dropped"
        f" {100 * measures.dropped / max(measures.objects, 1):.1f}%"
    )
    under = f"dots: {count_noun(inside, 'object')}, darker where there are more"
    under += f" ({measures.objects - inside:,} lie outside)" if inside < measures.objects else ""
    under += "; hatched: split by text, a stripe for each part" if split else ""
    over: dict[str, Any] = {"textcoords": "offset points", "annotation_clip": False, "color": INK}
    name = axes.annotate(
        leaves.name, (0, 1), (0, 30), "axes fraction", fontsize=17, fontweight="bold", **over
    )
    axes.annotate(shown, (1, 0), (12, 4), name, fontsize=12, **over)
    axes.annotate(facts, (0, 1), (0, 11), "axes fraction", fontsize=10.5, **over)
    axes.annotate(under, (1, 0), (0, -34), "axes fraction", fontsize=9, ha="right", **over)
