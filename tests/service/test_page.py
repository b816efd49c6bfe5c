"""The live map in Chromium against the service: from a drawn region to a match, and failures."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from math import atanh, radians, sin
from pathlib import Path
from typing import Any, cast

import pytest

from placewire.serve import gateway as gateways
from placewire.serve.auth import make_key
from service import Service, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed: no chromium on the path", allow_module_level=True)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
WAIT_S = 60
POLL_MS = 50

# The page closes a notice after 9 s, which may be too early for a test on a loaded machine.
KEEP_NOTICES = """
const schedule = window.setTimeout;
window.setTimeout = (act, ms, ...given) => schedule(act, ms === 9000 ? 1e9 : ms, ...given);
"""

Page = Any  # playwright's, which is imported only where it is used


@pytest.fixture(scope="module")
def launch() -> Iterator[Callable[[bool], Any]]:
    """Launch a browser with or without WebGL: the map is slow in software, and lists need none."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browsers: dict[bool, Any] = {}

        def launched(drawn: bool) -> Any:
            if drawn not in browsers:
                flags = [*FLAGS, *([] if drawn else ["--disable-3d-apis"])]
                browsers[drawn] = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
            return browsers[drawn]

        yield launched
        for browser in browsers.values():
            browser.close()


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Start the service with the given options."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(serving(tmp_path / "state", **options))


@pytest.fixture
def service(begin: Any) -> Service:
    return cast(Service, begin())


@pytest.fixture
def visit(launch: Any, begin: Any) -> Iterator[Callable[..., Page]]:  # the service outlives it
    """Open the page; fail afterwards if it logged errors or made requests to other hosts."""
    contexts, problems = [], []

    def open_page(
        service: Service, *, drawn: bool = False, expected: str = "(?!)", **settings: Any
    ) -> Page:
        context = launch(drawn).new_context(
            **{"viewport": {"width": 800, "height": 560}, "reduced_motion": "reduce", **settings}
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1_000 * WAIT_S)
        page.add_init_script(KEEP_NOTICES)

        def note(text: str) -> None:
            if not re.search(expected, text):
                problems.append(text)

        page.on("console", lambda line: note(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(service.url)
                else problems.append(f"another host: {request.url}")
            ),
        )
        page.goto(f"{service.url}/")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def live(page: Page) -> Page:
    page.wait_for_selector("#connection[data-state=live]")
    return page


def publish(service: Service, id: str, lon: float, lat: float, text: str) -> None:
    service.publish({"id": id, "lon": lon, "lat": lat, "text": text})


def publish_at(service: Service, at: datetime, *texts: str) -> None:
    service.publish(*(
        {"id": f"{at} {n}", "lon": 0, "lat": 0, "text": text, "ts": at.isoformat()}
        for n, text in enumerate(texts)
    ))  # fmt: skip


def choose(page: Page, name: str, value: str) -> None:
    page.check(f"input[name={name}][value={value}]", force=True)


def drag(page: Page, *corners: tuple[int, int]) -> None:
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=3)
    page.mouse.up()


def numbers(page: Page, *names: str) -> list[float]:
    return [float(page.input_value(f"#{name}")) for name in names]


def rows(page: Page, selector: str) -> list[str]:
    return page.locator(selector).all_inner_texts()


def wait_for_rows(page: Page, selector: str, expected: list[str]) -> None:
    end = time.monotonic() + WAIT_S
    while (found := page.locator(selector).all_text_contents()) != expected:
        assert time.monotonic() < end, f"{selector}: expected {expected}, got {found}"
        page.wait_for_timeout(POLL_MS)


def wait_for_colour(page: Page, at: tuple[int, int], variable: str) -> None:
    """Wait until a pixel of the map has the colour of that custom property."""
    from io import BytesIO

    from PIL import Image

    wanted = page.evaluate(
        "(name) => { const probe = document.createElement('i'); document.body.append(probe);"
        " probe.style.color = `var(--${name})`; const said = getComputedStyle(probe).color;"
        " probe.remove(); return said.match(/\\d+/g).map(Number); }",
        variable,
    )
    clip = {"x": at[0] - 2, "y": at[1] - 2, "width": 5, "height": 5}
    end = time.monotonic() + WAIT_S
    while True:
        image = Image.open(BytesIO(page.screenshot(clip=clip))).convert("RGB")
        seen: Any = image.getpixel((2, 2))
        if max(abs(a - b) for a, b in zip(seen, wanted, strict=True)) < 48:
            return
        assert time.monotonic() < end, f"at {at}: expected {variable} {wanted}, got {seen}"
        page.wait_for_timeout(POLL_MS)


def test_from_a_drawn_box_to_its_match(service: Service, visit: Any) -> None:
    page = live(visit(service, drawn=True))
    page.click("#tab-new")
    page.fill("#words", "coffee AND (free OR sale)")
    choose(page, "shape", "box")
    page.click("#draw-start")
    drag(page, (520, 160), (560, 200), (720, 320))
    west, south, east, north = numbers(page, "west", "south", "east", "north")
    assert west < east
    assert south < north
    page.click("#subscribe")
    page.wait_for_selector("#wire-empty")
    lon, lat = (west + east) / 2, (south + north) / 2
    publish(service, "o1", lon, lat, "Free coffee, 5th Ave!")
    publish(service, "o2", lon, lat, "Coffee as ever")
    publish(service, "o3", east + 1, lat, "Free coffee too far east")
    page.wait_for_selector("#wire-list li")
    [row] = rows(page, "#wire-list .wire-row button")
    assert re.fullmatch(
        r"coffee-free-sale matched “Free coffee, 5th Ave!”, .* from its centre", row
    )
    page.wait_for_selector("#map[data-ready]")
    page.click("#tab-subscriptions")
    assert rows(page, ".card-name") == ["coffee-free-sale"]
    assert rows(page, ".card-count") == ["1 result"]
    wait_for_colour(page, (620, mercator_row(lat, (north, 160), (south, 320))), "hue-0")


def mercator_row(lat: float, *known: tuple[float, int]) -> int:
    """The pixel row of a latitude, from those of two others."""
    (top, low), (bottom, high) = ((atanh(sin(radians(at))), row) for at, row in known)
    return round(low + (high - low) * (top - atanh(sin(radians(lat)))) / (top - bottom))


@pytest.mark.slow
def test_circles_polygons_and_points_are_drawn(service: Service, visit: Any) -> None:
    page = live(visit(service, drawn=True))
    page.click("#tab-new")
    choose(page, "shape", "circle")
    page.click("#draw-start")
    drag(page, (600, 300), (600, 360))
    assert numbers(page, "radius")[0] > 100_000
    first = numbers(page, "lon", "lat")
    page.fill("#name", "round")
    page.click("#subscribe")
    page.wait_for_selector("#view-wire:not([hidden])")
    page.click("#tab-new")
    choose(page, "shape", "polygon")
    page.click("#draw-start")
    for corner in ((500, 200), (700, 200)):
        page.mouse.click(*corner)
    page.mouse.dblclick(600, 330)
    corners = [line.split() for line in page.input_value("#polygon").splitlines()]
    assert [len(corner) for corner in corners] == [2, 2, 2]
    assert corners[0][1] == corners[1][1]
    page.fill("#name", "three-cornered")
    page.click("#subscribe")
    page.wait_for_selector("#view-wire:not([hidden])")
    publish(service, "o1", *first, "Tea in both")
    publish(
        service, "o2", float(corners[0][0]) + 0.5, float(corners[0][1]) - 0.1, "Tea in a corner"
    )
    publish(service, "o3", first[0], float(corners[0][1]) + 1, "Tea in neither")
    publish(service, "o4", *first, "Tea after all")
    page.wait_for_selector(".wire-row:has-text('Tea after all') >> nth=1")
    said = [(row.split()[0], row.split("“")[1].split("”")[0]) for row in rows(page, ".wire-row")]
    assert sorted(said) == [
        ("round", "Tea after all"),
        ("round", "Tea in both"),
        ("three-cornered", "Tea after all"),
        ("three-cornered", "Tea in a corner"),
        ("three-cornered", "Tea in both"),
    ]
    page.click("#tab-new")
    choose(page, "kind", "nearest")
    page.click("#draw-start")
    page.mouse.click(600, 300)
    assert numbers(page, "lon", "lat") == pytest.approx(first, abs=0.01)
    page.click("#draw-start")
    page.keyboard.press("Escape")
    assert page.is_hidden("#draw-bar")


def tab_to(page: Page, id: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id || document.activeElement.value") == id:
            return
    raise AssertionError(f"no way by Tab to {id}")


@pytest.mark.slow
def test_by_keys_alone(service: Service, visit: Any) -> None:
    page = live(visit(service, drawn=True))
    tab_to(page, "tab-wire")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    tab_to(page, "words")
    page.keyboard.type("tea")
    tab_to(page, "everywhere")
    page.keyboard.press("ArrowRight")
    tab_to(page, "draw-centre")
    page.keyboard.press("Enter")
    around = numbers(page, "west", "south", "east", "north")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")  # draws: the map has the focus, its middle is the pen
    for key in ("Enter", "ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    west, south, east, north = numbers(page, "west", "south", "east", "north")
    assert [west, south, east, north] != around
    assert (around[0] + around[2]) / 2 == pytest.approx(west, abs=0.01)
    assert page.evaluate("document.activeElement.id") == "draw-start"
    west -= 1  # or typed
    tab_to(page, "west")
    page.keyboard.press("Control+A")
    page.keyboard.type(str(west))
    tab_to(page, "subscribe")
    page.keyboard.press("Enter")
    page.wait_for_selector("#view-wire:not([hidden])")
    [listed] = service.http.get("/v1/subscriptions").json()["subscriptions"]
    assert listed["subscription"]["region"]["box"] == [west, south, east, north]
    assert page.evaluate("document.activeElement.id") == "tab-wire"
    publish(service, "o1", (west + east) / 2, (south + north) / 2, "Tea at last")
    page.wait_for_selector("#wire-list li")
    page.wait_for_function(
        "() => document.getElementById('said').textContent.includes('Tea at last')"
    )
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "End tea"
    page.keyboard.press("Enter")
    page.wait_for_selector("#cards-empty:not([hidden])")
    listed = service.http.get("/v1/subscriptions").json()["subscriptions"]
    assert [(one["id"], one["status"]) for one in listed] == [("tea", "ended")]


def test_ranked_lists_keep_their_order(service: Service, visit: Any) -> None:
    page = live(visit(service))
    page.click("#tab-new")
    choose(page, "kind", "nearest")
    page.fill("#words", "coffee")
    page.fill("#lon", "-73.98")
    page.fill("#lat", "40.75")
    page.fill("#k", "2")
    page.click("#subscribe")
    page.wait_for_selector(".card .ranking", state="attached")
    for name, away in (("far", 0.3), ("near", 0.01), ("middle", 0.1), ("none", 0.001)):
        publish(
            service, name, -73.98, 40.75 + away, f"{'tea' if name == 'none' else 'coffee'} {name}"
        )
    wait_for_rows(page, ".ranked", ["1coffee near1.1\u00a0km", "2coffee middle11\u00a0km"])
    page.click("#tab-new")
    choose(page, "kind", "relevant")
    page.fill("#reach", "100000")
    page.fill("#name", "suits")
    page.click("#subscribe")
    wait_for_rows(page, "[data-id=suits] .ranked-text", ["coffee near", "coffee middle"])
    publish(service, "best", -73.98, 40.75, "coffee")
    wait_for_rows(page, "[data-id=suits] .ranked-text", ["coffee", "coffee near"])
    page.reload()
    live(page)
    page.click("#tab-subscriptions")
    wait_for_rows(page, "[data-id=suits] .ranked-text", ["coffee", "coffee near"])


def test_trending_bars_and_a_question(service: Service, visit: Any) -> None:
    page = live(visit(service, expected="422"))
    page.click("#tab-new")
    choose(page, "kind", "trending")
    page.fill("#k", "2")
    page.fill("#every", "1")
    page.click("#subscribe")
    page.wait_for_selector(".card .bars", state="attached")
    now = datetime.now().astimezone()  # of the stream: a report each second, by the objects' times
    for second, *texts in ((0, "coffee", "rain coffee", "rain coffee"), (1, "snow")):
        publish_at(service, now + timedelta(seconds=second), *texts)
    wait_for_rows(page, ".card .bar", ["coffee3", "rain2"])
    for second, text in ((2, "wind"), (3, "hail")):
        publish_at(service, now + timedelta(seconds=second), text)
    wait_for_rows(page, ".card-count", ["3 results"])
    # Each report replaces the one before.
    wait_for_rows(page, ".wire-words", ["trending: coffee (3), rain (2)"])
    shares = page.eval_on_selector_all(
        ".card .bar-fill", "(fills) => fills.map((fill) => fill.getBoundingClientRect().width)"
    )
    assert shares[1] / shares[0] == pytest.approx(2 / 3, abs=0.02)
    page.click("#tab-new")
    choose(page, "kind", "boolean")
    page.fill("#words", "rain")
    page.click("#ask")
    page.wait_for_selector("#answer .ranked")
    assert page.inner_text("#answer h3") == "2 objects in the last hour"
    assert rows(page, "#answer .ranked-text") == ["rain coffee", "rain coffee"]
    page.fill("#words", "(rain")
    page.click("#ask")
    page.wait_for_selector("#wish-error:not([hidden])")
    assert "where: a parenthesis is not closed" in page.inner_text("#wish-error")


def test_only_what_was_made_here(service: Service, visit: Any) -> None:
    page = visit(service)
    wish = {"id": "theirs", "kind": "boolean", "where": "tea OR coffee"}
    page.request.post(f"{service.url}/v1/subscriptions", data=wish)
    live(page)
    page.click("#tab-new")
    page.fill("#words", "coffee")
    page.click("#subscribe")
    page.wait_for_selector("#view-wire:not([hidden])")
    page.reload()
    live(page)
    publish(service, "o1", 0, 0, "coffee")
    page.wait_for_function("() => document.querySelectorAll('.wire-row').length === 2")
    page.click("#wire-mine")
    publish(service, "o2", 0, 0, "more coffee")
    page.wait_for_selector("text=more coffee")
    assert page.locator(".wire-name:visible").all_inner_texts() == ["coffee", "coffee"]
    assert page.locator(".card-name").all_text_contents() == ["coffee", "theirs"]


UNCUT = (
    "not partitioned. Each of the 4 workers matches a share of the objects against all"
    " subscriptions."
)


@pytest.mark.slow
def test_a_change_of_plan_is_seen_and_shown(begin: Any, visit: Any) -> None:
    service = begin(pipeline=False)
    service.start_pipeline(workers="4")
    for west in range(-40, 40, 10):
        region = {"box": [west, -10, west + 9, 10]}
        service.subscribe(f"s{west}", kind="boolean", region=region)

    def publish_everywhere() -> None:
        some = [{"id": f"o{lon}", "lon": lon, "lat": 0, "text": "tea"} for lon in range(-40, 40)]
        service.publish(*some)
        service.caught_up()

    publish_everywhere()
    page = live(visit(service, drawn=True))
    page.click("#plan-toggle")
    page.wait_for_selector("#legend-said:not(:empty)")
    assert page.inner_text("#legend") == f"Plan shared: {UNCUT}"
    page.click("#tab-system")
    wait_for_rows(page, "#plan-line", [f"shared, version 1: {UNCUT}"])
    assert rows(page, "#workers li") == []
    page.click("#plan-toggle")
    assert service.http.post("/v1/plan", json={"plan": "kdt"}).status_code == 202
    service.until(lambda: publish_everywhere() or service.http.get("/v1/plan").json()["loads"])
    page.wait_for_selector(".notice")
    assert "Plan changed: kdt, version 2" in page.inner_text("#notices")
    assert "kdt, requested" in page.inner_text("#notices")
    page.click(".notice button:text('Show')")
    page.wait_for_selector("#legend-workers li")
    shares = rows(page, "#legend-workers .legend-share")
    assert len(shares) == 4
    assert sum(int(share.split()[0]) for share in shares) == pytest.approx(100, abs=2)
    assert page.get_attribute("#plan-toggle", "aria-pressed") == "true"
    plan = service.http.get("/v1/plan").json()
    wait_for_rows(page, "#plan-line", [f"kdt, version 2: {len(plan['leaves'])} leaves, 4 workers"])
    [change] = rows(page, "#plan-events li")
    assert change.endswith("kdt, requested")
    assert len(rows(page, "#workers li")) == 4
    assert re.fullmatch(r"[\d.]+ in · [\d.]+ out /s", page.inner_text("#said-throughput"))
    assert page.locator("#plots canvas").count() == 3


def test_one_s_own_and_everybody_s_are_told_apart(service: Service, visit: Any) -> None:
    crowd, key = make_key("crowd", ("subscribe",))
    assert service.gateway is not None
    service.gateway.ledger.add_key(key)
    for name in ("c1", "c2"):
        service.http.put(
            f"/v1/subscriptions/{name}",
            json={"kind": "boolean", "where": "tea"},
            headers={"authorization": f"Bearer {crowd}"},
        )
    page = live(visit(service))
    page.click("#tab-new")
    page.fill("#words", "coffee")
    page.fill("#expires", "2001-01-01T00:00")
    page.click("#subscribe")
    page.wait_for_selector("#wish-error:not([hidden])")
    assert page.inner_text("#wish-error") == "Expiry must be in the future"
    assert page.evaluate("document.activeElement.id") == "expires"
    at = datetime.now().replace(microsecond=0) + timedelta(hours=1)
    page.fill("#expires", at.isoformat())
    page.click("#subscribe")
    page.wait_for_selector("#view-wire:not([hidden])")
    assert page.locator("#tab-subscriptions").text_content() == "Subscriptions 1"
    [wish] = page.locator(".card-wish").all_text_contents()
    assert wish.startswith("coffee, everywhere; expires ")
    assert wish.endswith(f"{at:%H:%M:%S}")
    page.click("#tab-system")
    wait_for_rows(page, "#fact-subscriptions", ["3"])
    assert rows(page, "#fact-listed") == ["1"]
    later = (at.astimezone() + timedelta(seconds=1)).isoformat()
    service.publish({"id": "o1", "lon": 0, "lat": 0, "text": "coffee", "ts": later})
    wait_for_rows(page, ".notice strong", ["coffee created", "coffee expired"])
    wait_for_rows(page, "#fact-subscriptions", ["2"])
    assert rows(page, "#fact-listed") == ["0"]
    assert page.locator(".card").count() == 0
    assert service.results("coffee") == []


def test_a_key_is_asked_for(begin: Any, visit: Any) -> None:
    service = begin(pipeline=False, require_keys=True)
    assert service.gateway is not None
    right, key = make_key("reader", ("subscribe",))
    service.gateway.ledger.add_key(key)
    page = visit(service, expected="401")
    page.wait_for_selector("#key-dialog[open]")
    assert page.inner_text("#connection").strip() == "Key required"
    page.fill("#key", "pw_wrong")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "() => document.getElementById('key-dialog').open &&"
        " document.getElementById('key-said').textContent.includes('rejected')"
    )
    page.fill("#key", right)
    page.keyboard.press("Enter")
    live(page)
    assert page.is_hidden("#banner")
    page.reload()
    live(page)


def test_a_dead_server_says_so_and_nothing_is_missed(service: Service, visit: Any) -> None:
    page = live(visit(service, expected="ERR_|Failed to load"))
    resumed_from = []
    page.on("request", lambda request: resumed_from.append(request.headers.get("last-event-id")))
    page.click("#tab-new")
    page.fill("#words", "coffee")
    page.click("#subscribe")
    page.wait_for_selector("#view-wire:not([hidden])")
    publish(service, "o1", 0, 0, "coffee before")
    wait_for_rows(page, ".wire-words", ["matched “coffee before”"])
    service.stop_pipeline()
    publish(service, "o2", 0, 0, "coffee meanwhile")
    service.stop_gateway()
    page.wait_for_selector("#banner:not([hidden])")
    assert page.inner_text("#banner-title") == "The server does not answer"
    assert "Last message" in page.inner_text("#banner-detail")
    assert page.inner_text("#connection").strip() == "Disconnected"
    service.start_gateway()
    service.start_pipeline()
    page.click("#retry")
    live(page)
    publish(service, "o3", 0, 0, "coffee after")
    said = [f"matched “coffee {when}”" for when in ("after", "meanwhile", "before")]
    wait_for_rows(page, ".wire-words", said)
    assert {place for place in resumed_from if place is not None} == {"1"}
    assert page.is_hidden("#banner")


def test_a_service_that_is_not_well_says_what(
    begin: Any, visit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "START_TIMEOUT_S", 0)
    service = begin(pipeline=False)
    page = visit(service, expected="503")
    page.wait_for_selector("#connection[data-state=ill]")
    assert page.inner_text("#banner-title") == "The server is degraded"
    said = "the pipeline is down; accepted events wait for it"
    assert page.inner_text("#banner-detail") == said


@pytest.mark.slow
def test_hostile_texts_stay_texts(service: Service, visit: Any) -> None:
    page = live(visit(service, drawn=True))
    bad = "<img src=x onerror=alert(1)><script>alert(2)</script> coffee"
    page.click("#tab-new")
    page.fill("#words", "coffee")
    page.fill("#name", "<b onclick=alert(3)>&amp;")
    page.click("#subscribe")
    page.wait_for_selector("#view-wire:not([hidden])")
    for id in ("__proto__", "<svg onload=alert(4)>", "constructor"):
        publish(service, id, 10, 10, bad)
    page.wait_for_function("() => document.querySelectorAll('.wire-row').length === 3")
    assert rows(page, ".wire-words") == [f"matched “{bad}”"] * 3
    assert rows(page, ".wire-name") == ["<b onclick=alert(3)>&amp;"] * 3
    page.click(".wire-row button >> nth=0")
    page.wait_for_selector(".object-text")
    assert page.inner_text(".object-text") == bad
    page.click("#tab-new")
    page.click("#ask")
    page.wait_for_selector("#answer .ranked")
    assert rows(page, "#answer .ranked-text") == [bad] * 3
    made = "#views img, #views script, #views b, .maplibregl-popup script, .maplibregl-popup img"
    assert page.locator(made).count() == 0


# Elements without an accessible name.
NAMELESS = """() => {
  const parts = document.querySelectorAll('button, input, select, textarea, [role=img], section');
  const named = (part) => part.getAttribute('aria-label') || part.getAttribute('aria-labelledby')
    || part.labels?.length || part.textContent.trim();
  return [...parts].filter((part) => !named(part)).map((part) => part.outerHTML.slice(0, 80));
}"""

# The contrast of pairs of custom properties, as WCAG defines it.
CONTRASTS = r"""(pairs) => {
  const probe = document.body.appendChild(document.createElement('i'));
  const linear = (n) => (n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
  const light = (name) => {
    probe.style.color = `var(--${name})`;
    const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map((n) => linear(n / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  return pairs.map(([a, b]) => {
    const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y);
    return [a, b, bright / dark];
  });
}"""


def test_everything_has_a_name_and_can_be_read(service: Service, visit: Any) -> None:
    page = live(visit(service))
    nameless = page.evaluate(NAMELESS)
    assert nameless == []
    pairs = [("text", "panel"), ("muted", "panel"), ("muted", "raised"), ("accent", "panel"),
             ("on-accent", "accent"), ("bad", "bad-soft"), ("name", "land"), ("text", "field"),
             ("name", "sea"), ("name-minor", "land"), ("name-minor", "sea"),
             *((f"hue-{hue}", "panel") for hue in range(8)),
             *((f"hue-{hue}", "raised") for hue in range(8)),
             *(("on-hue", f"hue-{hue}") for hue in range(8))]  # fmt: skip
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ratios = page.evaluate(CONTRASTS, pairs)
        assert [ratio for ratio in ratios if ratio[2] < 4.5] == [], scheme


# Visible text whose colour, blended over its backgrounds, has a contrast below 4.5. Animations are
# held at their start, where a new row is tinted.
FAINT = r"""() => {
  for (const animation of document.getAnimations()) {
    animation.pause();
    animation.currentTime = 0;
  }
  const linear = (n) => (n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
  const pixel = canvas.getContext('2d', { willReadFrequently: true });
  const paint = (colour, opacity = 1) => {
    pixel.globalAlpha = opacity;
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...pixel.getImageData(0, 0, 1, 1).data].map((n) => linear(n / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const faint = [];
  for (const part of document.querySelectorAll('#panel *')) {
    const hint = part.placeholder && !part.value;
    const text = [...part.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!(text || hint) || part.disabled || !part.checkVisibility()) continue;
    const style = getComputedStyle(part, text ? undefined : '::placeholder');
    const chain = [];
    for (let at = part; at; at = at.parentElement) chain.unshift(getComputedStyle(at));
    let ground = paint('white');
    for (const { backgroundColor } of chain) ground = paint(backgroundColor);
    const opacity = chain.reduce((all, s) => all * s.opacity, text ? 1 : Number(style.opacity));
    const [dark, bright] = [ground, paint(style.color, opacity)].sort((x, y) => x - y);
    if (bright / dark < 4.5) faint.push([part.className || part.id, bright / dark]);
  }
  return faint;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rendered_text_has_contrast(service: Service, visit: Any, scheme: str) -> None:
    wishes = [{"kind": "boolean", "where": "tea"}] * 8  # one of each colour
    wishes.append({"kind": "nearest", "lon": 0, "lat": 0, "keywords": ["tea"], "k": 2})
    for number, wish in enumerate(wishes):
        service.subscribe(f"s{number}", **wish)
    page = live(visit(service, color_scheme=scheme, reduced_motion="no-preference"))
    page.wait_for_selector(".card", state="attached")
    publish(service, "o1", 0, 0, "tea")
    page.wait_for_function("() => document.querySelectorAll('.wire-row').length === 9")
    for tab in ("wire", "subscriptions", "new", "system"):
        page.click(f"#tab-{tab}")
        assert page.evaluate(FAINT) == [], tab


@pytest.mark.slow
def test_fits_a_phone(service: Service, visit: Any) -> None:
    page = live(
        visit(
            service,
            drawn=True,
            viewport={"width": 360, "height": 740},
            has_touch=True,
            is_mobile=True,
        )
    )
    for tab in ("wire", "subscriptions", "new", "system"):
        page.click(f"#tab-{tab}")
        wide = page.evaluate(
            "[document.documentElement.scrollWidth, document.getElementById('views').scrollWidth]"
        )
        assert max(wide) <= 360, tab
    assert page.locator("#view-system #plot-lag").count() == 1
    page.click("#tab-new")
    choose(page, "shape", "circle")
    page.click("#draw-start")
    page.wait_for_selector("#panel[data-height=low]")
    drag(page, (180, 300), (180, 380))
    page.wait_for_selector("#panel[data-height=half]")
    assert numbers(page, "radius")[0] > 0
