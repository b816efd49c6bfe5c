"""The lexicon of a state: a copy of the file that the settings named, under its digest."""

from __future__ import annotations

import hashlib
from pathlib import Path

from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.state.layout import StateDir, write_file
from placewire.state.mirror import here, list_names
from placewire.text.lexicon import Lexicon, read_lexicon


def keep_lexicon(state: StateDir, settings: Settings) -> None:
    """Copy the lexicon into the state: the user's file may change, move or go."""
    if settings.lexicon is None or settings.lexicon_digest is None:
        return
    target = state.lexicon(settings.lexicon_digest)
    if target.name not in list_names(state.root):
        try:
            raw = Path(settings.lexicon).read_bytes()
        except OSError as error:
            raise Unusable(
                f"lexicon {settings.lexicon}: cannot be read: {error.strerror}"
            ) from None
        if hashlib.sha256(raw).hexdigest() != settings.lexicon_digest:
            raise Unusable(f"lexicon {settings.lexicon}: has changed since it was checked")
        write_file(target, raw)


def open_lexicon(state: StateDir, settings: Settings) -> Lexicon | None:
    """The lexicon by which a state scores, none if it has none; raises Unusable."""
    if settings.lexicon_digest is None:
        return None
    return read_lexicon(str(here(state.lexicon(settings.lexicon_digest))))
