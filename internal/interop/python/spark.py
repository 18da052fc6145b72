"""Writes Iceberg tables with Spark into the folder that is its first argument, and what Spark reads in them into cases.jsonl.

The second argument is Iceberg's runtime for Spark. Every snapshot and every ref of a table is read once, with the filters as
further columns, so that Spark judges the rows without its own pruning.
"""

import logging
import os
import sys
import time

os.environ["TZ"] = "UTC"
time.tzset()

from pyspark.sql import SparkSession  # noqa: E402

from rendering import Cases  # noqa: E402

out, runtime = sys.argv[1:3]
spark = (
    SparkSession.builder.master("local[2]").appName("interop")
    .config("spark.jars", runtime)
    .config("spark.driver.extraClassPath", runtime)
    .config("spark.driver.memory", "1g")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.adaptive.enabled", "false")
    .config("spark.sql.codegen.wholeStage", "false")  # compiling costs more than these few rows
    .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.lake.type", "hadoop")
    .config("spark.sql.catalog.lake.warehouse", out)
    .config("spark.sql.defaultCatalog", "lake")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # filters of columns that an old schema lacks
cases = Cases(out + "/cases.jsonl")

PLAIN = {
    "write.distribution-mode": "none", "write.spark.fanout.enabled": "true", "write.parquet.page-row-limit": "20",
    "write.delete.distribution-mode": "none", "write.update.distribution-mode": "none", "write.merge.distribution-mode": "none",
}
COW = {"write.delete.mode": "copy-on-write", "write.update.mode": "copy-on-write", "write.merge.mode": "copy-on-write"}
MOR = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read", "write.merge.mode": "merge-on-read"}


def create(name, version, columns, partition="", **properties):
    properties = {**PLAIN, "format-version": str(version), **properties}
    listed = ", ".join(f"'{k}'='{v}'" for k, v in properties.items())
    by = f"PARTITIONED BY ({partition})" if partition else ""
    spark.sql(f"CREATE TABLE db.{name} ({columns}) USING iceberg {by} TBLPROPERTIES ({listed})")
    return name


def alter(name, *changes):
    for change in changes:
        spark.sql(f"ALTER TABLE db.{name} {change}")


def current(name):
    return spark.sql(f"SELECT snapshot_id FROM db.{name}.refs WHERE name = 'main'").collect()[0][0]


def answers(name, filters=(), columns="*"):
    """Writes Spark's answers. A filter is in SQL that both read alike, or a pair of Skomer's and Spark's SQL."""
    began = time.time()
    filters = [f if isinstance(f, tuple) else (f, f) for f in filters]
    snapshots = {
        r[0]: int(r[1].get("total-position-deletes", 0)) + int(r[1].get("total-equality-deletes", 0)) > 0
        for r in spark.sql(f"SELECT snapshot_id, summary FROM db.{name}.snapshots").collect()
    }
    main = current(name)
    at = [(str(s), f"VERSION AS OF {s}", d) for s, d in snapshots.items()]
    at += [(r[0], f"VERSION AS OF '{r[0]}'", snapshots[r[1]])
           for r in spark.sql(f"SELECT name, snapshot_id FROM db.{name}.refs WHERE name <> 'main'").collect()]
    at.append(("", "", snapshots[main]))
    for label, version, deletes in at:
        table = spark.sql(f"SELECT {columns} FROM db.{name} {version}")
        known = [(ours, theirs) for ours, theirs in filters if resolves(table, theirs)]
        width = len(table.columns)
        rows = table.selectExpr("*", *(f"coalesce({theirs}, false) AS passes_{i}" for i, (_, theirs) in enumerate(known))).collect()
        cases.add(out + "/db/" + name, (r[:width] for r in rows), label, table.columns, "", deletes)
        for i, (ours, _) in enumerate(known):
            cases.add(out + "/db/" + name, (r[:width] for r in rows if r[width + i]), label, table.columns, ours, deletes)
    print(f"{name}: {len(at)} versions read in {time.time() - began:.1f} s", flush=True)


def resolves(table, condition):
    """Older snapshots have older schemas: a filter on a column that they lack is not asked."""
    try:
        table.selectExpr(condition).schema
        return True
    except Exception as e:
        if "UNRESOLVED_COLUMN" in str(e) or "FIELD_NOT_FOUND" in str(e) or "DATATYPE_MISMATCH" in str(e):
            return False
        raise


EVENTS = "id BIGINT, kind STRING, amount DOUBLE, price DECIMAL(9,2), day DATE, at TIMESTAMP, tags ARRAY<STRING>"
EVENT_ROWS = """
  SELECT id, CASE WHEN id % 7 = 3 THEN NULL ELSE concat('kind-', id % 5) END,
         CASE WHEN id % 11 = 4 THEN CAST('NaN' AS DOUBLE) WHEN id % 13 = 5 THEN NULL ELSE id / 4 END,
         CAST(id * 1.25 AS DECIMAL(9,2)), date_add(DATE '2024-02-20', CAST(id AS INT)),
         timestamp_micros(1700000000000000 + id * 3600000123),
         CASE WHEN id % 6 = 1 THEN NULL WHEN id % 6 = 2 THEN array() ELSE array(concat('t', id % 3), NULL, 'all') END
  FROM range({0}, {1}, 1, 2)"""
EVENT_FILTERS = [
    "id = 17", "id IN (3, 40, 41, 77, 1000)", "id BETWEEN 30 AND 45", "kind = 'kind-2'", "kind IS NULL", "kind <> 'kind-1'",
    "kind LIKE 'kind-4%'", ("amount < 5", "amount < 5 AND NOT isnan(amount)"), ("amount IS NAN", "isnan(amount)"),
    ("NOT (amount >= 8)", "NOT (amount >= 8) OR isnan(amount)"), "price >= 60.5 AND price < 71", "day = DATE '2024-03-10'",
    "at > TIMESTAMP '2023-11-16 12:00:00'", ("contains(tags, 't1')", "array_contains(tags, 't1')"),
    "id > 20 AND (kind = 'kind-3' OR day < DATE '2024-03-20')",
]


def insert(name, rows, first, last):
    spark.sql(f"INSERT INTO db.{name} " + rows.format(first, last))


def changed(name):
    """A history of deletes, updates and merges."""
    insert(name, EVENT_ROWS, 0, 60)
    insert(name, EVENT_ROWS, 60, 100)
    spark.sql(f"DELETE FROM db.{name} WHERE id % 10 = 3")
    spark.sql(f"UPDATE db.{name} SET amount = -1, kind = 'changed' WHERE id BETWEEN 25 AND 35")
    spark.sql(f"""
      MERGE INTO db.{name} t USING (SELECT id * 5 AS id FROM range(10, 25)) s ON t.id = s.id
      WHEN MATCHED AND t.id % 2 = 0 THEN DELETE
      WHEN MATCHED THEN UPDATE SET t.kind = 'merged'
      WHEN NOT MATCHED THEN INSERT (id, kind, day) VALUES (s.id, 'new', DATE '2024-05-01')""")
    spark.sql(f"DELETE FROM db.{name} WHERE amount IS NULL")
    spark.sql(f"DELETE FROM db.{name} WHERE isnan(amount) AND id < 40")


def types(version):
    name = create(f"types_v{version}", version, """
      id INT, flag BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, d9 DECIMAL(9,2), d18 DECIMAL(18,4), d38 DECIMAL(38,10),
      day DATE, tz TIMESTAMP, ts TIMESTAMP_NTZ, s STRING, b BINARY""")
    for first in (0, 40):
        spark.sql(f"""
          INSERT INTO db.{name} SELECT CAST(id AS INT), id % 3 = 0, CAST(id * 7 - 100 AS INT), id * 10000000000 - 5,
            CASE id % 6 WHEN 0 THEN CAST('NaN' AS FLOAT) WHEN 1 THEN CAST('-0.0' AS FLOAT) WHEN 2 THEN CAST('0.0' AS FLOAT)
              WHEN 3 THEN CAST('Infinity' AS FLOAT) WHEN 4 THEN NULL ELSE CAST(id * 0.1 AS FLOAT) END,
            CASE id % 6 WHEN 0 THEN CAST('NaN' AS DOUBLE) WHEN 1 THEN CAST('-0.0' AS DOUBLE) WHEN 2 THEN CAST('0.0' AS DOUBLE)
              WHEN 3 THEN CAST('-Infinity' AS DOUBLE) WHEN 4 THEN NULL ELSE id * 0.1 END,
            CAST(id * -1.5 AS DECIMAL(9,2)), CAST(id * 1234.5678 AS DECIMAL(18,4)), CAST(id * 1e15 AS DECIMAL(38,10)),
            date_add(DATE '1969-12-01', CAST(id AS INT)), timestamp_micros(-40000000 + id * 1000001),
            CAST(timestamp_micros(-40000000 + id * 1000001) AS TIMESTAMP_NTZ),
            CASE id % 5 WHEN 0 THEN '' WHEN 1 THEN NULL WHEN 2 THEN concat(repeat('ä', 20), id) WHEN 3 THEN '😀' ELSE repeat('x', CAST(id AS INT)) END,
            CASE WHEN id % 4 = 0 THEN NULL ELSE unhex(concat('FF00', hex(id))) END
          FROM range({first}, {first + 40}, 1, 2)""")
    answers(name, [
        "flag = TRUE", "i = -37", "i > 300", "l BETWEEN 50000000000 AND 90000000000", ("f = 0", "f = CAST(0 AS FLOAT)"), ("d = 0", "d = 0"),
        ("f IS NAN", "isnan(f)"), ("d > 3", "d > 3 AND NOT isnan(d)"), ("d < 0", "d < 0"), ("f IS NOT NULL", "f IS NOT NULL"),
        "d9 = -30", "d9 < -100.25", "d18 >= 49382.7119", "d38 > 20000000000000000.5", "day < DATE '1970-01-01'",
        "tz < TIMESTAMP '1970-01-01 00:00:00'", ("ts >= TIMESTAMP '1970-01-01 00:00:10'", "ts >= TIMESTAMP_NTZ '1970-01-01 00:00:10'"),
        "s = ''", "s LIKE 'ää%'", "s >= 'y'", "s = '😀'", "b = X'FF0021'", "b IS NULL",
    ])


def evolved(version):
    name = create(f"evolved_v{version}", version, """
      id INT, small INT, ratio FLOAT, price DECIMAL(7,2), name STRING, gone STRING, place STRUCT<city: STRING, zip: INT>""", **COW)
    row = "SELECT CAST(id AS INT), {2} FROM range({0}, {1}, 1, 1)"
    insert(name, row.replace("{2}", "CAST(id * 3 AS INT), CAST(id / 8 AS FLOAT), CAST(id * 2.5 AS DECIMAL(7,2)), concat('n', id), concat('g', id), "
                             "CASE WHEN id % 5 = 0 THEN NULL ELSE named_struct('city', concat('c', id % 4), 'zip', CAST(id AS INT)) END"), 0, 30)
    alter(name, "RENAME COLUMN name TO title", "ALTER COLUMN small TYPE BIGINT", "ALTER COLUMN ratio TYPE DOUBLE",
          "ALTER COLUMN price TYPE DECIMAL(12,2)", "DROP COLUMN gone", "ADD COLUMN gone STRING", "ADD COLUMN extra INT AFTER id",
          "RENAME COLUMN place.zip TO code", "ALTER COLUMN place.code TYPE BIGINT", "ADD COLUMN place.country STRING")
    insert(name, row.replace("{2}", "CAST(id AS INT), id * 5000000000, id / 8, CAST(id * 20000.5 AS DECIMAL(12,2)), concat('n', id), "
                             "named_struct('city', concat('c', id % 4), 'code', id * 10000000000, 'country', 'NL'), concat('new', id)"), 30, 60)
    alter(name, "RENAME COLUMN title TO name", "ALTER COLUMN name FIRST", "ALTER COLUMN id COMMENT 'key'")
    spark.sql(f"DELETE FROM db.{name} WHERE id % 9 = 2")
    answers(name, [
        "small = 27", "small > 200000000000", "ratio = 1.5", "ratio > 2.9", "price = 37.5", "price >= 700000", "name = 'n33'", "name IN ('n1', 'n40')",
        "gone IS NULL", "gone = 'g4'", "gone = 'new44'", "extra = 44", "extra IS NULL", "place.code = 12", "place.zip = 12", "place.code > 400000000000",
        "place.country = 'NL'", "place.country IS NULL", "place IS NULL", "title = 'n7'",
    ])


def nested(version):
    name = create(f"nested_v{version}", version, """
      id INT, one STRUCT<a: INT, b: STRUCT<c: STRING, d: DOUBLE>>, lists ARRAY<INT>, deep ARRAY<ARRAY<STRING>>, things ARRAY<STRUCT<x: INT, y: STRING>>,
      props MAP<STRING, INT>, dict MAP<INT, STRUCT<v: STRING, w: ARRAY<BIGINT>>>""")
    spark.sql(f"""
      INSERT INTO db.{name} SELECT CAST(id AS INT),
        CASE WHEN id % 7 = 0 THEN NULL ELSE named_struct('a', CAST(id AS INT), 'b',
          CASE WHEN id % 7 = 1 THEN NULL ELSE named_struct('c', concat('c', id), 'd', CAST(id AS DOUBLE)) END) END,
        CASE id % 4 WHEN 0 THEN NULL WHEN 1 THEN array() WHEN 2 THEN array(CAST(id AS INT), NULL) ELSE array(1, 2, CAST(id AS INT)) END,
        CASE id % 4 WHEN 0 THEN NULL WHEN 1 THEN array(array(), NULL, array('a', NULL)) ELSE array(array(concat('d', id))) END,
        CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN array(NULL, named_struct('x', CAST(id AS INT), 'y', NULL)) ELSE array(named_struct('x', 1, 'y', concat('y', id))) END,
        CASE id % 4 WHEN 0 THEN NULL WHEN 1 THEN map() WHEN 2 THEN map('k', CAST(id AS INT), 'n', NULL) ELSE map('other', 5) END,
        CASE id % 3 WHEN 0 THEN NULL ELSE map(CAST(id AS INT), named_struct('v', 'x', 'w', array(id, NULL))) END
      FROM range(0, 50, 1, 2)""")
    alter(name, "ADD COLUMN things.element.z DOUBLE", "RENAME COLUMN one.b.c TO cc", "ALTER COLUMN lists.element TYPE BIGINT", "DROP COLUMN deep")
    spark.sql(f"""
      INSERT INTO db.{name} SELECT CAST(id AS INT), named_struct('a', 1, 'b', named_struct('cc', concat('c', id), 'd', 0.5)), array(id * 10000000000),
        array(named_struct('x', 2, 'y', 'z', 'z', 1.5)), map('k', 1), map(1, named_struct('v', NULL, 'w', NULL)) FROM range(50, 70, 1, 1)""")
    answers(name, [
        "one.a = 12", "one.a IS NULL", "one IS NULL", "one.b.cc = 'c55'", "one.b.d < 4", "one.b IS NOT NULL",
        ("contains(lists, 22)", "array_contains(lists, 22)"), ("NOT contains(lists, 2)", "NOT array_contains(lists, 2)"), "lists IS NULL",
        ("contains(props.key, 'k')", "array_contains(map_keys(props), 'k')"), ("contains(props.value, 5)", "array_contains(map_values(props), 5)"),
        "things IS NULL", "dict IS NOT NULL",
    ])


def partitioned(version):
    name = create(f"partitioned_v{version}", version, EVENTS, "kind, bucket(4, id)", **COW)
    insert(name, EVENT_ROWS, 0, 50)
    alter(name, "ADD PARTITION FIELD days(day)", "DROP PARTITION FIELD kind")
    insert(name, EVENT_ROWS, 50, 70)
    alter(name, "REPLACE PARTITION FIELD day_day WITH months(day)", "ADD PARTITION FIELD truncate(6, kind)", "DROP PARTITION FIELD bucket(4, id)")
    insert(name, EVENT_ROWS, 70, 90)
    alter(name, "ADD PARTITION FIELD hours(at)", "ADD PARTITION FIELD truncate(10, id)")
    insert(name, EVENT_ROWS, 90, 110)
    spark.sql(f"DELETE FROM db.{name} WHERE kind = 'kind-1'")
    spark.sql(EVENT_ROWS.format(104, 112)).toDF(*spark.table("db." + name).columns).writeTo("db." + name).overwritePartitions()
    answers(name, EVENT_FILTERS)


def history():
    name = create("history", 2, "id BIGINT, v STRING", **COW)
    rows = "SELECT id, concat('v', id) FROM range({0}, {1}, 1, 1)"
    insert(name, rows, 0, 10)
    first = current(name)
    alter(name, "CREATE TAG early", "CREATE BRANCH work")
    insert(name, rows, 10, 20)
    spark.sql(f"INSERT INTO db.{name}.branch_work SELECT id, 'branch' FROM range(100, 110, 1, 1)")
    alter(name, "ADD COLUMN extra INT")
    spark.sql(f"UPDATE db.{name} SET extra = 1 WHERE id < 5")
    spark.sql(f"CALL lake.system.rollback_to_snapshot('db.{name}', {first})")
    insert(name, "SELECT id, concat('after', id), 2 FROM range({0}, {1}, 1, 1)", 30, 40)
    for i in range(4):
        insert(name, "SELECT id, concat('small', id), 3 FROM range({0}, {1}, 1, 1)", 40 + i, 41 + i)
    spark.sql(f"CALL lake.system.rewrite_data_files(table => 'db.{name}', options => map('rewrite-all', 'true'))")
    spark.sql(f"CALL lake.system.rewrite_manifests('db.{name}')")
    answers(name, ["id = 7", "id > 12", "v LIKE 'after%'", "v = 'branch'", "extra = 2", "extra IS NULL"])


def expired():
    name = create("expired", 2, "id BIGINT, v STRING", **COW)
    for i in range(5):
        insert(name, "SELECT id, concat('v', id) FROM range({0}, {1}, 1, 1)", i * 10, i * 10 + 10)
    spark.sql(f"DELETE FROM db.{name} WHERE id % 4 = 1")
    spark.sql(f"CALL lake.system.expire_snapshots(table => 'db.{name}', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 2)")
    answers(name, ["id = 8", "v = 'v33'"])


def upgraded():
    name = create("upgraded", 1, "id BIGINT, v STRING, n INT", "truncate(2, v)")
    rows = "SELECT id, concat('v', id % 30), CAST(id % 3 AS INT) FROM range({0}, {1}, 1, 1)"
    insert(name, rows, 0, 40)
    alter(name, "SET TBLPROPERTIES ('format-version'='2')")
    alter(name, "SET TBLPROPERTIES (" + ", ".join(f"'{k}'='{v}'" for k, v in MOR.items()) + ")")
    insert(name, rows, 40, 60)
    spark.sql(f"DELETE FROM db.{name} WHERE id IN (3, 20, 44)")
    alter(name, "SET TBLPROPERTIES ('format-version'='3')")
    insert(name, rows, 60, 80)
    spark.sql(f"DELETE FROM db.{name} WHERE id IN (4, 21, 45, 61)")
    spark.sql(f"UPDATE db.{name} SET n = 100 WHERE id % 8 = 0")
    answers(name, ["id = 44", "id < 30", "v = 'v4'", "n = 100", "n IS NULL"])
    lineage(name)


def lineage(name):
    answers(name, ["id = 16"], "id, _row_id, _last_updated_sequence_number")


def merged(version, granularity, by):
    """Merge-on-read: position deletes in v2, deletion vectors in v3."""
    name = create(f"merged_v{version}_{granularity}", version, EVENTS, by, **MOR, **{"write.delete.granularity": granularity})
    changed(name)
    answers(name, EVENT_FILTERS + ["kind = 'merged'", "kind = 'changed'"])
    if version == 3:
        lineage(name)


def merged_over_specs():
    """Deletes under one partition spec, rows under another; then delete files rewritten, in Avro, and compacted away."""
    name = create("merged_specs", 2, EVENTS, "bucket(2, id)", **MOR, **{"write.delete.format.default": "avro"})
    insert(name, EVENT_ROWS, 0, 50)
    spark.sql(f"DELETE FROM db.{name} WHERE id % 6 = 5")
    alter(name, "DROP PARTITION FIELD bucket(2, id)", "RENAME COLUMN kind TO sort", "ALTER COLUMN price TYPE DECIMAL(11,2)")
    insert(name, EVENT_ROWS, 50, 90)
    spark.sql(f"DELETE FROM db.{name} WHERE sort = 'kind-4'")
    spark.sql(f"UPDATE db.{name} SET price = 1 WHERE id BETWEEN 40 AND 55")
    spark.sql(f"CALL lake.system.rewrite_position_delete_files(table => 'db.{name}', options => map('rewrite-all', 'true'))")
    spark.sql(f"DELETE FROM db.{name} WHERE id BETWEEN 60 AND 62")
    spark.sql(f"CALL lake.system.rewrite_data_files(table => 'db.{name}', options => map('delete-file-threshold', '1'))")
    answers(name, ["id = 44", "id > 70", "sort = 'kind-2'", "sort IS NULL", "price = 1", ("amount < 5", "amount < 5 AND NOT isnan(amount)")])


began = time.time()
spark.sql("CREATE NAMESPACE db")
for v in (2, 3):
    types(v)
    evolved(v)
    nested(v)
    partitioned(v)
    changed(create(f"rewritten_v{v}", v, EVENTS, **COW))
    answers(f"rewritten_v{v}", EVENT_FILTERS + ["kind = 'merged'", "kind = 'changed'"])
lineage("rewritten_v3")
history()
expired()
upgraded()
merged(2, "file", "")
merged(2, "partition", "truncate(6, kind)")
merged(3, "file", "bucket(3, id)")
merged_over_specs()
cases.close()
spark.stop()
print(f"Spark wrote and read its tables in {time.time() - began:.0f} s", flush=True)
