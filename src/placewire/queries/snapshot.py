"""Snapshot: answer queries from the latest commit of a state directory."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from placewire.ingest.queries import Query, read_query
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.events import QueryEvent, check_unique_keys, decode_event
from placewire.model.settings import Settings
from placewire.model.times import format_timestamp, parse_timestamp
from placewire.objects.sections import Json, Section, Span, open_sections
from placewire.queries.answer import answer_query, encode_line, without_data
from placewire.storage.layout import StateDir, open_lexicon
from placewire.storage.manifest import Manifest, read_latest, retry_reading
from placewire.text.analyzer import open_analyzer

NO_TS = "0001-01-01T00:00:00Z"
NO_ID = "query"


class Snapshot:
    """The retained objects of a state directory at one commit, open for queries.

    It needs no lock: files never change, and mapped files stay readable after the writer has
    deleted them.
    """

    def __init__(self, root: Path) -> None:
        self.state = StateDir.given(root)
        self.state.check_made()
        self.refresh()

    def refresh(self) -> None:
        """Move to the latest commit."""
        self.manifest, self.sections = retry_reading(self._open_latest)
        self.closed = False
        self.settings = self.manifest.settings if self.manifest is not None else Settings()
        # Only for its tokens: the store knows words, not hashes.
        self.analyzer = open_analyzer(self.settings, (0, 0))
        self.lexicon = open_lexicon(self.state, self.settings)

    def _open_latest(self) -> tuple[Manifest | None, list[Section]]:
        manifest = read_latest(self.state)
        return manifest, open_sections(self.state, manifest.store if manifest is not None else [])

    @property
    def now_us(self) -> int | None:
        """Return the clock of the state; None before the first valid event."""
        return self.manifest.now_us if self.manifest is not None else None

    def read(self, query: dict[str, Any] | str | bytes) -> tuple[Query, int | None]:
        """Decode a query; return it and the clock at which it is asked; raises InvalidEvent.

        `type`, `id` and `ts` are optional. A `ts` after the state's clock moves the clock for this
        query, as its event would.
        """
        given = decode_object(query)
        named = "id" in given
        event = {"type": "query", "id": NO_ID, "ts": NO_TS, **given}
        if event["type"] != "query":
            raise InvalidEvent(f"type: must be 'query', got {event['type']!r}")
        try:
            decoded = decode_event(msgspec.json.encode(event))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidEvent(f"query: {error}") from None
        assert isinstance(decoded, QueryEvent)
        now_us = self.now_us
        if "ts" in given:
            ts_us = parse_timestamp(decoded.ts)
            if now_us is not None and ts_us - now_us > self.settings.max_ahead_us:
                raise InvalidEvent(
                    f"query: ts is more than max_ahead past now, got {decoded.ts!r},"
                    f" now is {format_timestamp(now_us)}"
                )
            now_us = ts_us if now_us is None else max(now_us, ts_us)
        try:
            asked = read_query(decoded, self.analyzer, self.settings)
            return asked if named else asked._replace(id=NO_ID), now_us
        except InvalidEvent as error:
            if named:
                raise
            raise InvalidEvent(str(error).replace(f"query {NO_ID!r}", "query", 1)) from None

    def answer_line(self, query: dict[str, Any] | str | bytes, with_data: bool = False) -> bytes:
        """Return the answer as a line of JSON."""
        head, answer = self._answer(query, with_data)
        return encode_line(head | answer)

    def answer(
        self, query: dict[str, Any] | str | bytes, with_data: bool = False
    ) -> dict[str, Any]:
        """Return the answer without a seq; raises InvalidEvent."""
        head, answer = self._answer(query, with_data)
        for named in answer.get("objects", ()):
            if isinstance(named.get("data"), Json):
                named["data"] = msgspec.json.decode(named["data"])
        return head | answer

    def _answer(
        self, query: dict[str, Any] | str | bytes, with_data: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if self.closed:
            raise Unusable(f"state {self.state}: the snapshot is closed")
        asked, now_us = self.read(query)
        span = Span(0, -1) if now_us is None else Span(now_us - asked.last_us, now_us)
        answer = answer_query(asked, span, self.sections, self.lexicon, with_data)
        head = {"type": "answer"}
        if asked.id is not NO_ID:
            head["query"] = asked.id
        return head, answer if with_data else without_data(answer)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; later queries are refused."""
        self.sections = []
        self.closed = True


def decode_object(query: dict[str, Any] | str | bytes, what: str = "a query") -> dict[str, Any]:
    """Decode a JSON object such as a query; raises InvalidEvent."""
    if isinstance(query, dict):
        return query
    if not isinstance(query, str | bytes):
        raise InvalidEvent(f"{what} must be one JSON object, got {type(query).__name__}")
    try:
        line = query.encode() if isinstance(query, str) else query
        given = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidEvent(f"{what} must be one JSON object: {error}") from None
    if not isinstance(given, dict):
        raise InvalidEvent(f"{what} must be one JSON object, got {type(given).__name__}")
    check_unique_keys(line)
    return given
