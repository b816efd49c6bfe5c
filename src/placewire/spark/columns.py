"""Select the columns of DataFrames into the intake schema.

Casts, points as WKB and changes as JSON are computed in the JVM. Invalid values pass as they are:
decoding a block turns such rows into dead letters, so no cast ever stops a stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from placewire.model.errors import Unusable
from placewire.model.kinds import DEFAULT_KIND

LINE, CHANGE, OBJECT = 0, 1, 2  # roles of rows in the intake schema
OBJECT_NAMES = ("id", "ts", "lon", "lat", "text", "point", "terms", "data")
CHANGE_NAMES = (
    "type", "id", "ts", "kind", "expires", "region", "where", "lon", "lat", "keywords", "k",
    "mode", "within_m", "alpha", "reach_m", "window", "every", "data",
)  # fmt: skip
AXES = ("lon", "lat")
NESTED = (T.ArrayType, T.StructType, T.MapType)
OWN_PREFIX = "_placewire_"  # of the names of internal columns
ANY_TIME = "2000-01-01T00:00:00Z"
# Fixed JSON options, independent of those of the session.
JSON_SPACE = " \t\r\n"
DATA_FORM = {"timeZone": "UTC", "ignoreNullFields": "true"}
CHANGE_FORM = DATA_FORM | {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
    "dateFormat": "yyyy-MM-dd'T00:00:00Z'",
}
INTAKE_SCHEMA = (
    "role int, line binary, id string, ts_us bigint, ts_text string,"
    " lon double, lat double, wkb binary, text string, data string, data_text string,"
    " lon_text string, lat_text string"
)


def find_columns(
    frame: DataFrame, names: tuple[str, ...], given: Mapping[str, str] | None, what: str
) -> dict[str, str]:
    """Map field names to columns of a frame; raises Unusable for a missing column."""
    found = {name: name for name in names if name in frame.columns}
    for name, column in (given or {}).items():
        if name not in names:
            raise Unusable(f"{what}: {name!r} is not a field; fields are {', '.join(names)}")
        if column not in frame.columns:
            there = list_columns(frame)
            raise Unusable(f"{what}: column {column!r} for {name!r} does not exist, got {there}")
        found[name] = column
    return found


def select_objects(
    frame: DataFrame,
    given: Mapping[str, str] | None = None,
    extra: bool = False,
    carry: Sequence[str] = (),
) -> DataFrame:
    """Select objects into the intake schema; `extra` adds other columns as data if there is none.

    Columns to `carry` are appended unchanged.
    """
    found = find_columns(frame, OBJECT_NAMES, given, "objects")
    placed = {"lon", "lat"} <= found.keys() or "point" in found
    lacking = [name for name in ("id", "ts") if name not in found]
    lacking += [] if placed else ["lon and lat, or point"]
    lacking += [] if found.keys() & {"text", "terms"} else ["text, or terms"]
    if lacking:
        raise Unusable(f"objects: need a column {lacking[0]}, got {list_columns(frame)}")
    check_plain(frame, found, "objects", OBJECT_NAMES[:5])
    text = pick_column(frame, found, "text").cast("string") if "text" in found else None
    if text is None:
        text = F.array_join(pick_column(frame, found, "terms"), " ")
    data = data_text = F.lit(None).cast("string")
    others = [name for name in frame.columns if name not in found.values()]
    if "data" in found and isinstance(type_of(frame, found["data"]), T.StringType):
        data_text = pick_column(frame, found, "data")
    elif "data" in found:
        data = select_json(frame, found["data"])
    elif extra and others:
        data = F.to_json(F.struct(*(frame[quote_column(name)] for name in others)), DATA_FORM)
    by_point = "point" in found
    nothing = F.lit(None).cast("string")
    places = {name: nothing if by_point else pick_column(frame, found, name) for name in AXES}
    return frame.select(
        F.lit(OBJECT).alias("role"),
        F.lit(None).cast("binary").alias("line"),
        pick_column(frame, found, "id").cast("string").alias("id"),
        *select_times(frame, found),
        *(place.try_cast("double").alias(name) for name, place in places.items()),
        (select_wkb(frame, found["point"]) if by_point else F.lit(None).cast("binary")).alias(
            "wkb"
        ),
        text.alias("text"),
        data.alias("data"),
        data_text.alias("data_text"),
        *(  # values that are not numbers
            F.when(place.try_cast("double").isNull(), place.cast("string")).alias(f"{name}_text")
            for name, place in places.items()
        ),
        *(frame[quote_column(name)] for name in carry),
    )


def select_changes(
    frame: DataFrame, given: Mapping[str, str] | None = None, timeless: bool = False
) -> DataFrame:
    """Select subscribe and unsubscribe events into the intake schema, one JSON object each.

    The default type is `subscribe`, the default kind DEFAULT_KIND. Strings that are JSON are
    embedded when blocks are written. Other columns become data. `timeless` drops all times.
    """
    found = find_columns(frame, CHANGE_NAMES, given, "subscriptions")
    taken = set(found.values())
    if timeless:
        found = {name: column for name, column in found.items() if name not in ("ts", "expires")}
    lacking = [
        name for name in ("id", "ts") if name not in found and not (timeless and name == "ts")
    ]
    if lacking:
        raise Unusable(f"subscriptions: need a column {lacking[0]}, got {list_columns(frame)}")
    kind = pick_column(frame, found, "type") if "type" in found else F.lit(None)
    kind = F.coalesce(kind.cast("string"), F.lit("subscribe"))
    fields = [kind.alias("type")]
    if timeless:
        fields.append(F.lit(ANY_TIME).alias("ts"))
    for name, column in found.items():
        if name not in ("type", "kind"):
            value = frame[quote_column(column)]
            if name == "id" and not isinstance(type_of(frame, column), NESTED):
                value = value.cast("string")
            fields.append(value.alias(name))
    of_kind = pick_column(frame, found, "kind") if "kind" in found else F.lit(None)
    of_kind = F.coalesce(of_kind.cast("string"), F.lit(DEFAULT_KIND))
    fields.append(F.when(kind == "subscribe", of_kind).alias("kind"))
    others = [name for name in frame.columns if name not in taken]
    if others and "data" not in found and not timeless:
        data = F.struct(*(frame[quote_column(name)] for name in others))
        fields.append(F.when(kind == "subscribe", data).alias("data"))
    line = F.to_json(F.struct(*fields), CHANGE_FORM).cast("binary")
    texts = [name for name in frame.columns if isinstance(type_of(frame, name), T.StringType)]
    return select_line_rows(
        frame, invalidate_line(line, [frame[quote_column(name)] for name in texts]), CHANGE
    )


def invalidate_line(line: Column, texts: Sequence[Column]) -> Column:
    """Make a line invalid if one of its texts is not UTF-8, so that decoding rejects it.

    Spark would write a replacement character, and two ids could become equal.
    """
    wrong = [F.coalesce(~F.is_valid_utf8(text), F.lit(False)) for text in texts]
    if not wrong:
        return line
    most = F.substring(line, 1, F.length(line) - 1)
    return F.when(reduce(or_, wrong), F.concat(most, F.lit(b',"\xff":0}'))).otherwise(line)


def select_lines(frame: DataFrame, column: str = "value", kind: str | None = None) -> DataFrame:
    """Select events, JSON in one column, into the intake schema.

    Events without a type get the type `kind`, if it is given.
    """
    if column not in frame.columns:
        raise Unusable(f"events: need a column {column!r}, got {list_columns(frame)}")
    if not isinstance(type_of(frame, column), T.StringType | T.BinaryType):
        found = type_of(frame, column).simpleString()
        raise Unusable(f"events: {column} must be a text or binary, got {found}")
    line = frame[quote_column(column)].cast("binary")
    if kind is not None:
        line = add_type(line, kind)
    return select_line_rows(frame, line, LINE)


def add_type(line: Column, kind: str) -> Column:
    """Add the type `kind` to lines of JSON that have none; other bytes stay unchanged.

    Most lines are not parsed: they begin with their type or do not contain the key.
    """
    text = F.ltrim(line.cast("string"), F.lit(JSON_SPACE))
    own = F.contains(text, F.lit('"type"')) | F.contains(text, F.lit("\\u"))
    own &= F.get_json_object(text, "$.type").isNotNull()
    own = F.startswith(text, F.lit('{"type":"')) | own
    inside = F.substring(text.cast("binary"), 2, F.length(line))
    empty = F.startswith(F.ltrim(inside.cast("string"), F.lit(JSON_SPACE)), F.lit("}"))
    lacks = F.startswith(text, F.lit("{")) & ~empty & ~own
    typed = F.concat(F.lit(f'{{"type":"{kind}",'.encode()), inside)
    return F.when(lacks, typed).otherwise(line)


def select_line_rows(frame: DataFrame, line: Column, role: int) -> DataFrame:
    """Select lines into the intake schema."""
    nothing = [
        F.lit(None).cast(kind).alias(name)
        for name, kind in (field.split() for field in INTAKE_SCHEMA.split(", ")[2:])
    ]
    return frame.select(F.lit(role).alias("role"), line.alias("line"), *nothing)


def check_frames(**given: object) -> None:
    """Reject arguments that are not DataFrames; raises Unusable."""
    for name, frame in given.items():
        if not isinstance(frame, DataFrame):
            kind = f"{type(frame).__module__}.{type(frame).__name__}"
            raise Unusable(f"{name}: must be a Spark DataFrame, got {kind}")


def check_plain(
    frame: DataFrame, found: Mapping[str, str], what: str, names: Sequence[str]
) -> None:
    """Reject arrays, structs and maps where a single value is needed; raises Unusable."""
    for name in names:
        kind = type_of(frame, found[name]) if name in found else None
        if isinstance(kind, NESTED):
            column = found[name]
            raise Unusable(f"{what}: {column} must be a single value, got {kind.simpleString()}")
    if "terms" in found and not isinstance(type_of(frame, found["terms"]), T.ArrayType):
        got = type_of(frame, found["terms"]).simpleString()
        raise Unusable(f"{what}: {found['terms']} must be an array of terms, got {got}")


def list_columns(frame: DataFrame) -> str:
    """List the columns of a frame for a message, without internal ones."""
    return ", ".join(name for name in frame.columns if not name.startswith(OWN_PREFIX)) or "none"


def pick_column(frame: DataFrame, found: Mapping[str, str], name: str) -> Column:
    return frame[quote_column(found[name])]


def quote_column(name: str) -> str:
    """Quote the name of a column, which may contain dots."""
    return f"`{name.replace('`', '``')}`"


def type_of(frame: DataFrame, name: str) -> T.DataType:
    return frame.schema[name].dataType


def select_time(frame: DataFrame, name: str) -> Column:
    """Select times in microseconds; strings stay unchanged, times without a zone are in UTC."""
    kind, column = type_of(frame, name), frame[quote_column(name)]
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column)
    if isinstance(kind, T.TimestampNTZType | T.DateType):
        return F.concat(
            F.date_format(column.cast("timestamp_ntz"), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit("Z")
        )
    return column.cast("string")


def select_times(frame: DataFrame, found: Mapping[str, str]) -> tuple[Column, Column]:
    """Select the time of objects as two columns, one of which is null."""
    time = select_time(frame, found["ts"])
    by_number = isinstance(type_of(frame, found["ts"]), T.TimestampType)
    return (
        (time if by_number else F.lit(None).cast("bigint")).alias("ts_us"),
        (F.lit(None).cast("string") if by_number else time).alias("ts_text"),
    )


def select_wkb(frame: DataFrame, name: str) -> Column:
    """Select points as WKB from a GEOMETRY, GEOGRAPHY or binary column."""
    kind, column = type_of(frame, name), frame[quote_column(name)]
    if isinstance(kind, T.BinaryType):
        return column
    if isinstance(kind, T.GeometryType | T.GeographyType):
        return F.st_asbinary(column)
    raise Unusable(f"objects: point must be GEOMETRY, GEOGRAPHY or WKB, got {kind.simpleString()}")


def select_json(frame: DataFrame, name: str) -> Column:
    """Select data of any type but string as JSON."""
    kind, column = type_of(frame, name), frame[quote_column(name)]
    if isinstance(kind, T.StructType | T.MapType | T.ArrayType | T.VariantType):
        return F.to_json(column, DATA_FORM)
    # to_json takes no single values: write a list of one and strip its brackets.
    return F.regexp_extract(F.to_json(F.array(column), DATA_FORM), r"(?s)^\[(.*)\]$", 1)
