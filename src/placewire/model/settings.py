"""Settings that change results, read from a TOML file and checked."""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.times import DAY_US, read_duration

MOST_BITS = 1_000  # of a lexicon's numbers; larger ones do not fit into a float
DEFAULT, CJK_BIGRAM, SNOWBALL = "default", "cjk-bigram", "snowball:"
FORMS = f"{DEFAULT}, {CJK_BIGRAM} or {SNOWBALL}LANGUAGE"
MOST_STOP_WORDS = 10_000  # every task receives them

# Stop words by language; the English list is that of Lucene's English analyzer.
STOP_WORDS = {
    "english": """
        a an and are as at be but by for if in into is it no not of on or such that the their then
        there these they this to was will with
    """
}


class LexiconFile(msgspec.Struct, forbid_unknown_fields=True):
    """Document frequencies of terms."""

    documents: int
    df: dict[str, int]


class Settings(NamedTuple):
    """The settings that, with the log, determine the results; all others change only speed."""

    analyzer: str = "default"
    stemmer: str | None = None  # the library behind the analyzer, with its version
    stop_words: str | None = None  # terms, ascending, joined by blanks
    lexicon: str | None = None  # a path; the digest identifies the file
    lexicon_digest: str | None = None
    window_count: int | None = 100_000
    window_us: int | None = None
    retention_us: int = DAY_US
    reach_m: float = 20_015_114.35
    max_ahead_us: int = 366 * DAY_US


def read_settings(path: Path | None) -> Settings:
    """Return the settings of a TOML file, the defaults without one; raises Unusable."""
    if path is None:
        return Settings()
    return check_settings(read_toml(path, f"settings {path}"), f"settings {path}")


def read_toml(path: Path, label: str) -> dict[str, Any]:
    """Read a TOML file; raises Unusable with a message that begins with `label`."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise Unusable(f"{label}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Unusable(f"{label}: is not TOML: {error}") from None


def check_settings(given: Settings | dict[str, Any] | None, label: str = "settings") -> Settings:
    """Return settings that are given as such, as a table or not at all; raises Unusable."""
    if given is None or isinstance(given, Settings):
        return given or Settings()
    try:
        return parse_settings(given)
    except InvalidEvent as error:
        raise Unusable(f"{label}: {error}") from None


def parse_settings(table: dict[str, Any]) -> Settings:
    """Return the settings of a decoded table; raises InvalidEvent naming the field."""
    known = {"analyzer", "stop_words", "lexicon", "window", "retention", "reach_m", "max_ahead"}
    for name in table:
        if name not in known:
            raise InvalidEvent(
                f"{name!r}: is not a setting; settings are {', '.join(sorted(known))}"
            )
    settings = Settings()
    if "analyzer" in table:
        stemmer = check_analyzer(table["analyzer"])
        settings = settings._replace(analyzer=table["analyzer"], stemmer=stemmer)
    if "stop_words" in table:
        settings = settings._replace(stop_words=read_stop_words(table["stop_words"]))
    if "lexicon" in table:
        if not isinstance(table["lexicon"], str):
            raise InvalidEvent(f"lexicon: must be a path, got {table['lexicon']!r}")
        path = Path(table["lexicon"]).absolute()
        settings = settings._replace(lexicon=str(path), lexicon_digest=check_lexicon(path))
    if "window" in table:
        settings = set_window(settings, table["window"])
    if "retention" in table:
        settings = settings._replace(retention_us=read_duration(table["retention"], "retention"))
    if "max_ahead" in table:
        settings = settings._replace(max_ahead_us=read_duration(table["max_ahead"], "max_ahead"))
    if "reach_m" in table:
        reach = table["reach_m"]
        if isinstance(reach, bool) or not isinstance(reach, int | float) or not 0 < reach < 1e300:
            raise InvalidEvent(f"reach_m: must be a number > 0 and < 1e300, got {reach!r}")
        settings = settings._replace(reach_m=float(reach))
    return settings


def complete_settings(settings: Settings) -> Settings:
    """Fill in the derived fields of settings that code has made; raises Unusable."""
    try:
        settings = settings._replace(stemmer=check_analyzer(settings.analyzer))
        if settings.stop_words is not None:
            settings = settings._replace(stop_words=read_stop_words(settings.stop_words.split()))
        if settings.lexicon is None or settings.lexicon_digest is not None:
            return settings
        return settings._replace(lexicon_digest=check_lexicon(Path(settings.lexicon)))
    except InvalidEvent as error:
        raise Unusable(f"settings: {error}") from None


def check_lexicon(path: Path) -> str:
    """Check that a lexicon is `{"documents": N, "df": {"term": n}}` and return its digest."""
    try:
        raw = path.read_bytes()
        lexicon = msgspec.json.decode(raw, type=LexiconFile)
    except OSError as error:
        raise InvalidEvent(f"lexicon {path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidEvent(
            f'lexicon {path}: must be {{"documents": N, "df": {{"term": n}}}}: {error}'
        ) from None
    for number in (lexicon.documents, *lexicon.df.values()):
        if number < 0 or number.bit_length() > MOST_BITS:
            got = f"{number}" if number.bit_length() < 64 else f"one of {number.bit_length()} bits"
            raise InvalidEvent(f"lexicon {path}: its numbers must be 0 or more, finite, got {got}")
    return hashlib.sha256(raw).hexdigest()


def set_window(settings: Settings, window: Any) -> Settings:
    """Set the window to `{"count": N}` or `{"time": duration}`; raises InvalidEvent."""
    if isinstance(window, dict) and len(window) == 1:
        count = window.get("count")
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            return settings._replace(window_count=count, window_us=None)
        if "time" in window:
            return settings._replace(
                window_count=None, window_us=read_duration(window["time"], "window.time")
            )
    raise InvalidEvent(
        f'window: must be {{count = N}}, N from 1 on, or {{time = "PT1H"}}, got {window!r}'
    )


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text of the default analyzer, in order, with repeats."""
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
