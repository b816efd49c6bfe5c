"""Malformed lines, one for each thing that is commonly wrong, to show what dead letters say."""

from __future__ import annotations

_BAD = (
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":-73.98,"lat":40.7',
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":412.5,"lat":40.75,"text":"off the map"}}',
    '{{"type":"object","id":"bad-{n}","ts":"yesterday","lon":2.35,"lat":48.85,"text":"when?"}}',
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":2.35,"lat":48.85}}',
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":"2.35","lat":48.85,"text":"a string"}}',
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":2.35,"lat":48.85,"text":"x","colour":1}}',
    '{{"type":"subscribe","id":"bad-{n}","ts":"{ts}","kind":"boolean","where":"(coffee AND"}}',
    '{{"type":"subscribe","id":"bad-{n}","ts":"{ts}","kind":"boolean",'
    '"region":{{"box":[13.1,52.7,13.8,52.3]}},"where":"south above north"}}',
    '{{"type":"publish","id":"bad-{n}","ts":"{ts}"}}',
    "bad-{n}: not JSON at all",
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":2.35,"lat":48.85,"text":"caf\udce9"}}',
    "",
)


def malformed_line(number: int, stamp: str) -> str:
    """The `number`-th malformed line; one kind after the other."""
    return _BAD[number % len(_BAD)].format(n=number, ts=stamp)
