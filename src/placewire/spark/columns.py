"""DataFrames as the intake takes them: columns found by name and brought to one form.

Everything that can be done in the JVM is done there: casts, points as WKB, changes as JSON. What is
wrong with a row is found out later, when its block is decoded: it becomes a dead letter, and no
cast ever stops a stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from placewire.model.errors import Unusable

LINE, CHANGE, OBJECT = 0, 1, 2  # what a row of the intake is
OBJECT_NAMES = ("id", "ts", "lon", "lat", "text", "point", "terms", "data")
CHANGE_NAMES = (
    "type", "id", "ts", "kind", "expires", "region", "where", "lon", "lat", "keywords", "k",
    "mode", "within_m", "alpha", "reach_m", "window", "every", "data",
)  # fmt: skip
AXES = ("lon", "lat")
NESTED = (T.ArrayType, T.StructType, T.MapType)  # no single values
OWN = "_placewire_"  # columns of ours begin with it
ANY_TIME = "2000-01-01T00:00:00Z"
# How JSON is written, whatever the session has for its own.
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
    """Which column of a frame is which; raises Unusable for a name that is not there."""
    found = {name: name for name in names if name in frame.columns}
    for name, column in (given or {}).items():
        if name not in names:
            raise Unusable(f"{what}: {name!r} is no column of theirs; these are {', '.join(names)}")
        if column not in frame.columns:
            there = columns_of(frame)
            raise Unusable(f"{what}: column {column!r} for {name!r} is not there, got {there}")
        found[name] = column
    return found


def take_objects(
    frame: DataFrame,
    given: Mapping[str, str] | None = None,
    extra: bool = False,
    carry: Sequence[str] = (),
) -> DataFrame:
    """Objects in the intake's form; `extra` columns ride along as data if there is no other.

    Columns to `carry` are left beside it as they are.
    """
    found = find_columns(frame, OBJECT_NAMES, given, "objects")
    placed = {"lon", "lat"} <= found.keys() or "point" in found
    lacking = [name for name in ("id", "ts") if name not in found]
    lacking += [] if placed else ["lon and lat, or point"]
    lacking += [] if found.keys() & {"text", "terms"} else ["text, or terms"]
    if lacking:
        raise Unusable(f"objects: need a column {lacking[0]}, got {columns_of(frame)}")
    check_plain(frame, found, "objects", OBJECT_NAMES[:5])
    text = column_of(frame, found, "text").cast("string") if "text" in found else None
    if text is None:
        text = F.array_join(column_of(frame, found, "terms"), " ")
    data = data_text = F.lit(None).cast("string")
    others = [name for name in frame.columns if name not in found.values()]
    if "data" in found and isinstance(kind_of(frame, found["data"]), T.StringType):
        data_text = column_of(frame, found, "data")
    elif "data" in found:
        data = as_json(frame, found["data"])
    elif extra and others:
        data = F.to_json(F.struct(*(frame[quoted(name)] for name in others)), DATA_FORM)
    by_point = "point" in found
    nothing = F.lit(None).cast("string")
    places = {name: nothing if by_point else column_of(frame, found, name) for name in AXES}
    return frame.select(
        F.lit(OBJECT).alias("role"),
        F.lit(None).cast("binary").alias("line"),
        column_of(frame, found, "id").cast("string").alias("id"),
        *times_of(frame, found),
        *(place.try_cast("double").alias(name) for name, place in places.items()),
        (points_of(frame, found["point"]) if by_point else F.lit(None).cast("binary")).alias("wkb"),
        text.alias("text"),
        data.alias("data"),
        data_text.alias("data_text"),
        *(no_number(place).alias(f"{name}_text") for name, place in places.items()),
        *(frame[quoted(name)] for name in carry),
    )


def take_changes(
    frame: DataFrame, given: Mapping[str, str] | None = None, timeless: bool = False
) -> DataFrame:
    """Subscriptions and ends of them in the intake's form, one JSON object each.

    They lack a kind if they are `boolean`, and a type if they subscribe. Texts may be JSON in them,
    which is put in its place later. Other columns ride along as data. If all is `timeless`, times
    of subscriptions are left out.
    """
    found = find_columns(frame, CHANGE_NAMES, given, "subscriptions")
    taken = set(found.values())
    if timeless:
        found = {name: column for name, column in found.items() if name not in ("ts", "expires")}
    lacking = [
        name for name in ("id", "ts") if name not in found and not (timeless and name == "ts")
    ]
    if lacking:
        raise Unusable(f"subscriptions: need a column {lacking[0]}, got {columns_of(frame)}")
    kind = column_of(frame, found, "type") if "type" in found else F.lit(None)
    kind = F.coalesce(kind.cast("string"), F.lit("subscribe"))
    fields = [kind.alias("type")]
    if timeless:
        fields.append(F.lit(ANY_TIME).alias("ts"))
    for name, column in found.items():
        if name not in ("type", "kind"):
            value = frame[quoted(column)]
            if name == "id" and not isinstance(kind_of(frame, column), NESTED):
                value = value.cast("string")
            fields.append(value.alias(name))
    of_kind = column_of(frame, found, "kind") if "kind" in found else F.lit(None)
    of_kind = F.coalesce(of_kind.cast("string"), F.lit("boolean"))
    fields.append(F.when(kind == "subscribe", of_kind).alias("kind"))
    others = [name for name in frame.columns if name not in taken]
    if others and "data" not in found and not timeless:
        data = F.struct(*(frame[quoted(name)] for name in others))
        fields.append(F.when(kind == "subscribe", data).alias("data"))
    line = F.to_json(F.struct(*fields), CHANGE_FORM).cast("binary")
    texts = [name for name in frame.columns if isinstance(kind_of(frame, name), T.StringType)]
    return as_lines(frame, refused_line(line, [frame[quoted(name)] for name in texts]), CHANGE)


def refused_line(line: Column, texts: Sequence[Column]) -> Column:
    """A line made of texts; if one is no UTF-8 the line is none either, and so is refused.

    JSON that Spark makes has another character in its place, and two ids might become one.
    """
    wrong = [F.coalesce(~F.is_valid_utf8(text), F.lit(False)) for text in texts]
    if not wrong:
        return line
    most = F.substring(line, 1, F.length(line) - 1)
    return F.when(reduce(or_, wrong), F.concat(most, F.lit(b',"\xff":0}'))).otherwise(line)


def take_lines(frame: DataFrame, column: str = "value", kind: str | None = None) -> DataFrame:
    """Events of the log, as JSON in one column, in the intake's form.

    Those that do not say their type are of `kind`, if that is given.
    """
    if column not in frame.columns:
        raise Unusable(f"events: need a column {column!r}, got {columns_of(frame)}")
    if not isinstance(kind_of(frame, column), T.StringType | T.BinaryType):
        found = kind_of(frame, column).simpleString()
        raise Unusable(f"events: {column} must be a text or binary, got {found}")
    line = frame[quoted(column)].cast("binary")
    if kind is not None:
        line = typed_line(line, kind)
    return as_lines(frame, line, LINE)


def typed_line(line: Column, kind: str) -> Column:
    """A line of JSON that has a type: its own, or else `kind`; its bytes stay as they are.

    Lines as programs write them need not be parsed here: they begin with their type, or have no
    key that might be it.
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


def as_lines(frame: DataFrame, line: Column, role: int) -> DataFrame:
    """Rows of the intake that are lines."""
    nothing = [
        F.lit(None).cast(kind).alias(name)
        for name, kind in (field.split() for field in INTAKE_SCHEMA.split(", ")[2:])
    ]
    return frame.select(F.lit(role).alias("role"), line.alias("line"), *nothing)


def check_frames(**given: object) -> None:
    """Refuse what is no DataFrame; raises Unusable."""
    for name, frame in given.items():
        if not isinstance(frame, DataFrame):
            kind = f"{type(frame).__module__}.{type(frame).__name__}"
            raise Unusable(f"{name}: must be a Spark DataFrame, got {kind}")


def check_plain(
    frame: DataFrame, found: Mapping[str, str], what: str, names: Sequence[str]
) -> None:
    """Refuse columns of arrays, structs and maps where a single value is needed."""
    for name in names:
        kind = kind_of(frame, found[name]) if name in found else None
        if isinstance(kind, NESTED):
            column = found[name]
            raise Unusable(f"{what}: {column} must be a single value, got {kind.simpleString()}")
    if "terms" in found and not isinstance(kind_of(frame, found["terms"]), T.ArrayType):
        got = kind_of(frame, found["terms"]).simpleString()
        raise Unusable(f"{what}: {found['terms']} must be an array of terms, got {got}")


def no_number(place: Column) -> Column:
    """What stands where a number should, null if it is one."""
    return F.when(place.try_cast("double").isNull(), place.cast("string"))


def columns_of(frame: DataFrame) -> str:
    """The columns that the user has, for a message."""
    return ", ".join(name for name in frame.columns if not name.startswith(OWN)) or "none"


def column_of(frame: DataFrame, found: Mapping[str, str], name: str) -> Column:
    return frame[quoted(found[name])]


def quoted(name: str) -> str:
    """A column's name as it stands, dots and all."""
    return f"`{name.replace('`', '``')}`"


def kind_of(frame: DataFrame, name: str) -> T.DataType:
    return frame.schema[name].dataType


def micros_of(frame: DataFrame, name: str) -> Column:
    """Times as microseconds; texts stay as they are, times without a zone are of UTC."""
    kind, column = kind_of(frame, name), frame[quoted(name)]
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column)
    if isinstance(kind, T.TimestampNTZType | T.DateType):
        return F.concat(
            F.date_format(column.cast("timestamp_ntz"), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit("Z")
        )
    return column.cast("string")


def times_of(frame: DataFrame, found: Mapping[str, str]) -> tuple[Column, Column]:
    """The two columns of an object's time, of which one is empty."""
    time = micros_of(frame, found["ts"])
    by_number = isinstance(kind_of(frame, found["ts"]), T.TimestampType)
    return (
        (time if by_number else F.lit(None).cast("bigint")).alias("ts_us"),
        (F.lit(None).cast("string") if by_number else time).alias("ts_text"),
    )


def points_of(frame: DataFrame, name: str) -> Column:
    """Points as WKB: of a GEOMETRY or GEOGRAPHY column, or of a binary one as it is."""
    kind, column = kind_of(frame, name), frame[quoted(name)]
    if isinstance(kind, T.BinaryType):
        return column
    if isinstance(kind, T.GeometryType | T.GeographyType):
        return F.st_asbinary(column)
    raise Unusable(f"objects: point must be GEOMETRY, GEOGRAPHY or WKB, got {kind.simpleString()}")


def as_json(frame: DataFrame, name: str) -> Column:
    """Data of any type but text as JSON."""
    kind, column = kind_of(frame, name), frame[quoted(name)]
    if isinstance(kind, T.StructType | T.MapType | T.ArrayType | T.VariantType):
        return F.to_json(column, DATA_FORM)
    # A single value: as the only element of a list, without the list.
    return F.regexp_extract(F.to_json(F.array(column), DATA_FORM), r"(?s)^\[(.*)\]$", 1)
