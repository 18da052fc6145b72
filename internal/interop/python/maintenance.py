"""Does to tables of a REST catalog what its standard input says, with Spark and PyIceberg, and says what Spark reads in them.

The arguments are the catalog's address and credential, and Iceberg's runtime for Spark. Every line in is a JSON object and has one
line out as its reply:

  {"namespace": name}                                 makes a namespace
  {"sql": […]}                                        runs statements; replies with the rows of the last one
  {"table": t, "ask": […]}                            replies with all rows, the columns, and for each predicate the numbers of its rows
  {"table": t, "orphans": folder, "until": ms}        removes what the table does not name and is older; replies with what that was
  {"table": t, "delete": predicate}                   PyIceberg deletes rows
  {"table": t, "overwrite": predicate, "add": number} PyIceberg overwrites rows by themselves with another n
"""

import json
import logging
import os
import sys
import time

os.environ["TZ"] = "UTC"
time.tzset()
replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # what libraries print is no reply

import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402
from pyiceberg.catalog.rest import RestCatalog  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from rendering import text  # noqa: E402

uri, credential, runtime = sys.argv[1:4]
spark = (
    SparkSession.builder.master("local[2]").appName("maintenance")
    .config("spark.jars", runtime)
    .config("spark.driver.extraClassPath", runtime)
    .config("spark.driver.memory", "1g")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
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
    .config("spark.sql.catalog.lake.type", "rest")
    .config("spark.sql.catalog.lake.uri", uri)
    .config("spark.sql.catalog.lake.credential", credential)
    .config("spark.sql.catalog.lake.cache-enabled", "false")  # PyIceberg commits too
    .config("spark.sql.defaultCatalog", "lake")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # errors are replies
catalog = RestCatalog("lake", uri=uri, credential=credential)
jvm = spark._jvm.org.apache.iceberg.spark


def run(statements):
    for statement in statements:
        rows = spark.sql(statement).collect()
    return {"rows": ["|".join(text(v) for v in r) for r in rows]}


def ask(name, predicates):
    table = spark.table(name)
    width = len(table.columns)
    rows = table.selectExpr("*", *(f"coalesce({p}, false) AS passes_{i}" for i, p in enumerate(predicates))).collect()
    return {
        "columns": table.columns, "rows": ["|".join(text(v) for v in r[:width]) for r in rows],
        "passing": [[k for k, r in enumerate(rows) if r[width + i]] for i in range(len(predicates))],
    }


def orphans(name, folder, until):
    """The procedure refuses times within the last day; the action that it calls does not."""
    table = jvm.Spark3Util.loadIcebergTable(spark._jsparkSession, "lake." + name)
    done = jvm.actions.SparkActions.get().deleteOrphanFiles(table).location(folder).olderThan(until).execute()
    return {"rows": list(done.orphanFileLocations())}


def delete(name, predicate):
    catalog.load_table(name).delete(predicate)
    return {}


def overwrite(name, predicate, add):
    table = catalog.load_table(name)
    rows = table.scan(row_filter=predicate).to_arrow()
    at = rows.column_names.index("n")
    n = pc.add(rows.column(at), pa.scalar(add, rows.schema.field(at).type))
    table.overwrite(rows.set_column(at, rows.schema.field(at), n).cast(table.schema().as_arrow()), overwrite_filter=predicate)
    return {}


def handle(r):
    if "namespace" in r:
        catalog.create_namespace(r["namespace"])  # Spark would give it an owner, which the server cannot keep
        return {}
    if "sql" in r:
        return run(r["sql"])
    if "ask" in r:
        return ask(r["table"], r["ask"])
    if "orphans" in r:
        return orphans(r["table"], r["orphans"], r["until"])
    if "delete" in r:
        return delete(r["table"], r["delete"])
    return overwrite(r["table"], r["overwrite"], r["add"])


for line in sys.stdin:
    try:
        reply = handle(json.loads(line))
    except Exception as e:
        reply = {"error": f"{type(e).__name__}: {e}"[:2000]}
    replies.write(json.dumps(reply, ensure_ascii=False) + "\n")
    replies.flush()
spark.stop()
