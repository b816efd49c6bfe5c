"""Read and check the analyzer and the stop words of the settings."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

from placewire.model.errors import InvalidEvent

DEFAULT, CJK_BIGRAM, SNOWBALL = "default", "cjk-bigram", "snowball:"
FORMS = f"{DEFAULT}, {CJK_BIGRAM} or {SNOWBALL}LANGUAGE"
MOST_STOP_WORDS = 10_000  # every task receives them

# Stop words by language; the English list is that of Lucene's English analyzer.
STOP_WORDS = {
    "english": """
        a an and are as at be but by for if in into is it no not of on or such that the their then
        there these they this to was will with
    """,
}


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text as the specification defines them, in order, with repeats."""
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())


def check_analyzer(name: Any) -> str | None:
    """Return the stemming library of an analyzer and its version, if any; raises InvalidEvent.

    The version matters: the stem of a word may differ between releases.
    """
    if not isinstance(name, str) or not (
        name in (DEFAULT, CJK_BIGRAM) or name.startswith(SNOWBALL)
    ):
        raise InvalidEvent(f"analyzer: must be {FORMS}, got {name!r}")
    if not name.startswith(SNOWBALL):
        return None
    try:
        import Stemmer  # an extra: most logs need none
    except ImportError:
        raise InvalidEvent(
            f"analyzer: {name!r} needs PyStemmer: pip install 'placewire[snowball]'"
        ) from None
    languages = Stemmer.algorithms()
    if name.removeprefix(SNOWBALL) not in languages:
        raise InvalidEvent(
            f"analyzer: snowball has {', '.join(languages)}; got {name.removeprefix(SNOWBALL)!r}"
        )
    return f"PyStemmer {Stemmer.version()}"


def read_stop_words(value: Any) -> str:
    """Return the sorted terms of stop words, joined by blanks; raises InvalidEvent.

    The value is the name of a list, a list of words, or `{"file": path}`.
    """
    if isinstance(value, str):
        if value not in STOP_WORDS:
            raise InvalidEvent(
                f"stop_words: must be {', '.join(sorted(STOP_WORDS))}, a list of words or"
                f' {{file = "PATH"}}, got {value!r}'
            )
        value = STOP_WORDS[value].split()
    elif isinstance(value, dict) and list(value) == ["file"] and isinstance(value["file"], str):
        value = read_stop_file(Path(value["file"]))
    if not isinstance(value, list) or not value:
        raise InvalidEvent(
            f'stop_words: must be a name, a list of words or {{file = "PATH"}}, got {value!r}'
        )
    terms: set[str] = set()
    for word in value:
        found = tokenize(word) if isinstance(word, str) else []
        if not found:
            raise InvalidEvent(f"stop_words: each must have a word in it, got {word!r}")
        terms.update(found)
    if len(terms) > MOST_STOP_WORDS:
        raise InvalidEvent(
            f"stop_words: must be at most {MOST_STOP_WORDS:,} words, got {len(terms):,}"
        )
    return " ".join(sorted(terms))


def read_stop_file(path: Path) -> list[str]:
    """Return the words of a file, one a line, without comments and empty lines."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise InvalidEvent(f"stop_words: {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidEvent(f"stop_words: {path} is not UTF-8") from None
    words = [line.partition("#")[0].strip() for line in lines]
    if not any(words):
        raise InvalidEvent(f"stop_words: {path} has no word in it")
    return [word for word in words if word]
