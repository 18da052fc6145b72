"""Writes Iceberg tables with PyIceberg, and what its own scan reads in every snapshot, for the whole table and for filters, into
cases.jsonl of the folder that is the first argument. The tables are in a SQL catalog in that folder, or fewer of them in the REST
catalog that is the second argument, with the credential that is the third.
"""

import datetime
import decimal
import sys
import uuid

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import (
    And, EqualTo, GreaterThan, GreaterThanOrEqual, In, IsNaN, IsNull, LessThan, LessThanOrEqual, Not, Or, StartsWith,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, HourTransform, IdentityTransform, MonthTransform, TruncateTransform, YearTransform
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType, ListType, LongType, MapType, NestedField,
    StringType, StructType, TimestampType, TimestamptzType, TimeType, UUIDType,
)

from rendering import Cases

out = sys.argv[1]
rest = len(sys.argv) > 2
if rest:
    catalog = RestCatalog("local", uri=sys.argv[2], credential=sys.argv[3])
else:
    catalog = SqlCatalog("local", uri=f"sqlite:///{out}/catalog.db", warehouse=out)
catalog.create_namespace("db")
catalog.create_namespace(("db", "inner"))
cases = Cases(out + "/cases.jsonl")

UTC = datetime.timezone.utc
EVENTS = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "kind", StringType()),
    NestedField(3, "amount", DoubleType()),
    NestedField(4, "ratio", FloatType()),
    NestedField(5, "price", DecimalType(9, 2)),
    NestedField(6, "day", DateType()),
    NestedField(7, "clock", TimeType()),
    NestedField(8, "at", TimestamptzType()),
    NestedField(9, "local", TimestampType()),
    NestedField(10, "flag", BooleanType()),
    NestedField(11, "raw", BinaryType()),
    NestedField(12, "three", FixedType(3)),
    NestedField(13, "small", IntegerType()),
    NestedField(14, "tags", ListType(15, StringType(), element_required=False)),
    NestedField(16, "props", MapType(17, StringType(), 18, IntegerType(), value_required=False)),
    NestedField(19, "place", StructType(NestedField(20, "city", StringType()), NestedField(21, "zip", IntegerType()))),
)


def row(i):
    at = datetime.datetime(2024, 1, 1, tzinfo=UTC) + datetime.timedelta(hours=7 * i, microseconds=i)
    return {
        "id": i, "kind": None if i % 7 == 3 else f"kind-{i % 5}",
        "amount": float("nan") if i % 11 == 4 else None if i % 13 == 5 else i / 4, "ratio": -0.0 if i % 9 == 0 else i / 8,
        "price": decimal.Decimal(i * 125) / 100, "day": at.date(), "clock": (at + datetime.timedelta(minutes=i)).time(), "at": at,
        "local": at.replace(tzinfo=None), "flag": None if i % 4 == 1 else i % 2 == 0, "raw": bytes([i % 256, 255]), "three": bytes([i % 256, 0, 1]),
        "small": i - 20, "tags": None if i % 6 == 1 else [] if i % 6 == 2 else [f"t{i % 3}", None, "all"],
        "props": None if i % 5 == 2 else {"k": i, "n": None}, "place": None if i % 8 == 6 else {"city": f"city-{i % 4}", "zip": i},
    }


def rows(table, first, last, change=lambda r: r):
    schema = table.schema().as_arrow()
    names = schema.names
    made = []
    for i in range(first, last):
        r = change(row(i))
        made.append({n: r.get(n) for n in names})
    return pa.Table.from_pylist(made, schema=schema)


# A function instead of an expression is asked of the rows of the whole scan: for NaN, Arrow rules out row groups by bounds that
# leave NaN out, and so loses rows.
FILTERS = [
    ("id = 17", EqualTo("id", 17)), ("id IN (3, 40, 41, 77)", In("id", {3, 40, 41, 77})), ("kind = 'kind-2'", EqualTo("kind", "kind-2")),
    ("kind IS NULL", IsNull("kind")), ("kind LIKE 'kind-4%'", StartsWith("kind", "kind-4")), ("amount IS NAN", lambda r: r["amount"] != r["amount"]),
    ("amount <= 5", And(LessThanOrEqual("amount", 5.0), Not(IsNaN("amount")))), ("ratio = 0", EqualTo("ratio", 0.0)),
    ("price >= 60.5 AND price < 71", And(GreaterThanOrEqual("price", decimal.Decimal("60.50")), LessThan("price", decimal.Decimal("71.00")))),
    ("day = DATE '2024-01-12'", EqualTo("day", "2024-01-12")), ("at > TIMESTAMP '2024-01-20 12:00:00'", GreaterThan("at", "2024-01-20T12:00:00+00:00")),
    ("local < TIMESTAMP '2024-01-02 12:00:00'", LessThan("local", "2024-01-02T12:00:00")), ("flag = TRUE", EqualTo("flag", True)),
    ("small < -10", LessThan("small", -10)), ("place.city = 'city-2'", EqualTo("place.city", "city-2")), ("place.zip > 60", GreaterThan("place.zip", 60)),
    ("id > 20 AND (kind = 'kind-3' OR day < DATE '2024-01-10')", And(GreaterThan("id", 20), Or(EqualTo("kind", "kind-3"), LessThan("day", "2024-01-10")))),
    ("raw = X'11FF'", EqualTo("raw", bytes([17, 255]))),
]


def value(v):
    """PyArrow gives maps as lists of pairs and structs as dicts; the rendering wants dicts and tuples."""
    if isinstance(v, dict):
        return tuple(value(x) for x in v.values())
    if isinstance(v, list):
        if v and all(isinstance(x, tuple) and len(x) == 2 for x in v):
            return {k: value(x) for k, x in v}
        return [value(x) for x in v]
    return v


def answer(table, at, where, expression):
    asked = {"row_filter": expression} if where and not callable(expression) else {}
    found = table.scan(snapshot_id=at, **asked).to_arrow()
    if callable(expression):
        found = found.filter(pa.array([expression(r) for r in found.to_pylist()], pa.bool_()))
    columns = [column.to_pylist() for column in found.columns]
    name = "local." + ".".join(table.name())
    cases.add(name, [tuple(value(v) for v in r) for r in zip(*columns)], at or "", found.column_names, where)


def answers(table, filters=FILTERS):
    for snapshot in table.snapshots():
        answer(table, snapshot.snapshot_id, "", None)
    answer(table, None, "", None)
    for where, expression in filters:
        answer(table, None, where, expression)


def create(name, schema=EVENTS, spec=PartitionSpec(), version="2"):
    return catalog.create_table("db." + name, schema, partition_spec=spec, properties={
        "format-version": version, "write.parquet.page-row-limit": "20", "write.parquet.row-group-limit": "25",
    })


def changed(name, spec, version):
    """Appends, overwrites and deletes, which PyIceberg makes by rewriting files."""
    table = create(name, spec=spec, version=version)
    table.append(rows(table, 0, 60))
    table.append(rows(table, 60, 100))
    table.delete(In("id", list(range(0, 100, 9))))
    table.overwrite(rows(table, 30, 40, lambda r: {**r, "kind": "changed"}), overwrite_filter=And(GreaterThanOrEqual("id", 30), LessThan("id", 40)))
    table.delete(IsNull("flag"))
    table.upsert(rows(table, 95, 110, lambda r: {**r, "tags": None, "props": None, "place": None}), join_cols=["id"]) if name == "plain" else None
    answers(table, FILTERS + [("kind = 'changed'", EqualTo("kind", "changed"))])


def partitioned():
    spec = PartitionSpec(
        PartitionField(1, 1000, BucketTransform(3), "id_bucket"), PartitionField(2, 1001, TruncateTransform(6), "kind_part"),
        PartitionField(8, 1002, MonthTransform(), "at_month"))
    table = create("partitioned", spec=spec)
    table.append(rows(table, 0, 50))
    with table.update_spec() as update:
        update.remove_field("kind_part")
        update.add_field("day", DayTransform(), "day_day")
        update.add_field("flag", IdentityTransform(), "flag_self")
    table.append(rows(table, 50, 75))
    with table.update_spec() as update:
        update.remove_field("id_bucket")
        update.remove_field("day_day")
        update.add_field("local", HourTransform(), "local_hour")
        update.add_field("price", TruncateTransform(1000), "price_trunc")
    table.append(rows(table, 75, 90))
    with table.update_spec() as update:
        update.add_field("day", YearTransform(), "day_year")
        update.rename_field("flag_self", "flag_again")
    table.append(rows(table, 90, 100))
    table.delete(EqualTo("kind", "kind-1"))
    answers(table)


def evolved():
    table = create("evolved")
    table.append(rows(table, 0, 40))
    with table.update_schema() as update:
        update.rename_column("kind", "sort")
        update.update_column("small", LongType())
        update.update_column("ratio", DoubleType())
        update.update_column("price", DecimalType(14, 2))
        update.delete_column("flag")
        update.add_column("note", StringType())
        update.add_column(("place", "country"), StringType())
        update.rename_column("place.zip", "code")
        update.delete_column("clock")
    with table.update_schema() as update:
        update.add_column("flag", StringType())
        update.move_first("flag")
        update.move_after("raw", "id")
    def change(r):
        place = r["place"] and {**r["place"], "country": "NL", "code": r["place"]["zip"]}
        return {**r, "sort": r["kind"], "small": r["id"] * 10**10, "price": r["price"] + 10**9, "note": f"n{r['id']}", "flag": "yes", "place": place}
    table.append(rows(table, 40, 80, change))
    table.delete(In("sort", ["kind-4"]))
    answers(table, [
        ("sort = 'kind-2'", EqualTo("sort", "kind-2")), ("small = -3", EqualTo("small", -3)), ("small > 500000000000", GreaterThan("small", 500000000000)),
        ("ratio = 2.5", EqualTo("ratio", 2.5)), ("price > 1000000055.5", GreaterThan("price", decimal.Decimal("1000000055.50"))),
        ("note = 'n44'", EqualTo("note", "n44")), ("note IS NULL", IsNull("note")), ("flag IS NULL", IsNull("flag")), ("flag = 'yes'", EqualTo("flag", "yes")),
        ("place.code = 12", EqualTo("place.code", 12)), ("place.country = 'NL'", EqualTo("place.country", "NL")),
    ])


def inner():
    """A namespace of two levels, and UUIDs, which PyArrow cannot compare."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "key", UUIDType()))
    table = catalog.create_table(("db", "inner", "keys"), schema)
    keys = [uuid.UUID(int=i << 120 | i) for i in range(256)]
    table.append(pa.table({"id": pa.array(range(256), pa.int64()), "key": pa.array([k.bytes for k in keys], pa.binary(16))}, schema=pa.schema([("id", pa.int64()), ("key", pa.binary(16))])))
    answers(table, [("id = 200", EqualTo("id", 200))])


changed("plain", PartitionSpec(), "2")
if not rest:
    changed("split", PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "kind"), PartitionField(1, 1001, TruncateTransform(20), "id_trunc")), "2")
    changed("old", PartitionSpec(), "1")
    partitioned()
evolved()
inner()
cases.close()
