"""Serve the page of the live map, or a page that says which of its libraries are missing.

Git has no third-party code, so a checkout has the libraries only after npm could fetch them.
"""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

PAGE = Path(__file__).parents[1] / "page"
LIBRARIES = {
    "MapLibre GL": "maplibre-gl/maplibre-gl.mjs",
    "uPlot": "uplot/uPlot.iife.min.js",
    "world-atlas": "world-atlas/land.json",
}
NO_CACHE = {"cache-control": "no-cache"}


def missing_libraries() -> list[str]:
    """The names of the libraries that are not installed."""
    return [name for name, file in LIBRARIES.items() if not (PAGE / "vendor" / file).is_file()]


async def show_page(_: Request) -> Response:
    missing = missing_libraries()
    if not missing:
        return FileResponse(PAGE / "index.html", headers=NO_CACHE)
    page = (PAGE / "missing.html").read_text("utf-8")
    text = page.replace("{missing}", "".join(f"<li>{name}</li>" for name in missing))
    return HTMLResponse(text, 503, headers=NO_CACHE)
