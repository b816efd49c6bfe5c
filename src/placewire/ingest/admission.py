"""Check one event as the pipeline will check it within its batch."""

from __future__ import annotations

from typing import NamedTuple

from placewire.ingest.changes import ChangesBuilder
from placewire.model.errors import InvalidEvent
from placewire.model.events import (
    AnyEvent,
    ObjectEvent,
    QueryEvent,
    SubscribeEvent,
    check_point,
    check_text,
    compact_data,
    decode_event,
)
from placewire.model.settings import Settings
from placewire.model.times import format_timestamp, parse_timestamp
from placewire.text.analyzer import open_analyzer
from placewire.text.words import Lexicon

RESET_AFTER = 256  # subscriptions that a builder collects


class Admitted(NamedTuple):
    """A valid event, its line, and its time."""

    line: bytes
    event: AnyEvent
    ts_us: int


def describe_rejected(ts_us: int, now_us: int) -> str:
    """Return the message for a time that is too far ahead."""
    return (
        f"ts is more than max_ahead past now, got {format_timestamp(ts_us)},"
        f" now is {format_timestamp(now_us)}"
    )


class Admission:
    """Checks events with the rules of the pipeline, and keeps the clock of accepted ones."""

    def __init__(self, settings: Settings, lexicon: Lexicon | None = None) -> None:
        self.settings = settings
        self.lexicon = lexicon
        self.analyzer = open_analyzer(settings, (0, 0))  # hashes are not used
        self.now_us: int | None = None
        self._reset_builder()

    def _reset_builder(self) -> None:
        self.builder = ChangesBuilder(self.analyzer, self.settings, self.lexicon)

    def admit(self, line: bytes) -> Admitted:
        """Return the event of a line; raises InvalidEvent."""
        if b"\n" in line:
            raise InvalidEvent("an event must be one line, got a newline in it")
        event = decode_event(line)
        try:
            ts_us = parse_timestamp(event.ts)
        except InvalidEvent as error:
            raise InvalidEvent(f"ts: {error}") from None
        if isinstance(event, ObjectEvent):
            check_point(event.lon, event.lat)
            check_text(event.text)
            compact_data(event.data)
        elif isinstance(event, SubscribeEvent):
            self.builder.subscribe(0, ts_us, 0, event)
            if len(self.builder.events) >= RESET_AFTER:
                self._reset_builder()
        elif isinstance(event, QueryEvent):
            raise InvalidEvent("type: must be object, subscribe or unsubscribe, got 'query'")
        return Admitted(line, event, ts_us)

    def advance(self, ts_us: int) -> None:
        """Advance the clock to an event; raises InvalidEvent if it is too far ahead.

        Call it in the order in which events are written.
        """
        now_us = self.now_us
        if now_us is not None and ts_us - now_us > self.settings.max_ahead_us:
            raise InvalidEvent(describe_rejected(ts_us, now_us))
        self.now_us = ts_us if now_us is None else max(now_us, ts_us)
