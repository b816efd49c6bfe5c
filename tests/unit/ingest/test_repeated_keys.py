"""A repeated key makes an event invalid, however its line is spaced."""

from __future__ import annotations

import pytest

from placewire.model.errors import InvalidEvent
from placewire.model.events import decode_event

STAMP = b'"ts":"2026-03-01T12:00:00Z"'


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"unsubscribe","id" :"a","id":"b",' + STAMP + b"}",
        b'{"type":"subscribe","id":"b","kind":"boolean","where" :"tea","where":"milk",'
        + STAMP
        + b"}",
        b'{"type":"subscribe","id":"b","kind":"boolean","region":{"box"\t:[0,0,1,1],"box":[0,0,2,2]},'
        + STAMP
        + b"}",
    ],
)
def test_a_repeated_key_is_seen_whatever_stands_before_its_colon(line: bytes) -> None:
    with pytest.raises(InvalidEvent, match="repeated"):
        decode_event(line)


def test_spaces_before_colons_are_allowed() -> None:
    event = decode_event(b'{"type" : "unsubscribe","id" :"a",' + STAMP + b"}")
    assert event.id == "a"
