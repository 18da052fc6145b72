"""DuckDB as an independent judge: one JSON command per input line, one JSON answer per output line.

{"files": [...], "where": "..."}     positions of the rows that pass, by file; DuckDB's own pruning is off
{"file": "...", "columns": [...]}    every value of the columns, rendered; an "error" where DuckDB cannot read the file
"""

import datetime
import decimal
import json
import sys
import uuid

import duckdb

con = duckdb.connect()
con.execute("SET threads=1")
con.execute("SET enable_progress_bar=false")
con.execute("SET TimeZone='UTC'")
con.execute("SET disabled_optimizers='filter_pushdown,statistics_propagation'")

EPOCH = datetime.datetime(1970, 1, 1)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def text(v):
    """The rendering that the Go side makes of the same value."""
    if v is None:
        return "null"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return str(v)
    if isinstance(v, float):
        return "nan" if v != v else v.hex() if v not in (float("inf"), float("-inf")) else str(v)
    if isinstance(v, decimal.Decimal):
        sign, digits, exponent = v.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        return f"{unscaled}e{exponent}"
    if isinstance(v, str):
        return "s" + v.encode("utf-8", "surrogatepass").hex()
    if isinstance(v, uuid.UUID):
        return "b" + v.bytes.hex()
    if isinstance(v, (bytes, bytearray)):
        return "b" + bytes(v).hex()
    if isinstance(v, list):
        return "[" + ",".join(text(x) for x in v) + "]"
    raise TypeError(type(v).__name__)


def expression(kind, name):
    """Times are compared as numbers, since Python's clocks end at the year 9999 and at microseconds."""
    q = quoted(name)
    if kind == "date":
        return f"date_diff('day', DATE '1970-01-01', {q})"
    if kind == "time":
        return f"epoch_us({q})"
    if kind in ("timestamp", "timestamptz"):
        return f"epoch_us({q})"
    if kind in ("timestamp_ns", "timestamptz_ns"):
        return f"epoch_ns({q})"
    return q


def values(command):
    try:
        columns = ", ".join(expression(c["kind"], c["name"]) for c in command["columns"])
        rows = con.execute(f"SELECT {columns} FROM read_parquet(?)", [command["file"]]).fetchall()
        return {"rows": [[text(v) for v in row] for row in rows]}
    except (duckdb.Error, TypeError, ValueError) as e:
        return {"error": str(e)[:300]}


def positions(command):
    sql = f"SELECT filename, file_row_number FROM read_parquet(?, filename=true, file_row_number=true) WHERE {command['where']}"
    out = {}
    try:
        for name, pos in con.execute(sql, [command["files"]]).fetchall():
            out.setdefault(name, []).append(pos)
    except duckdb.Error as e:
        return {"error": str(e)[:500]}
    return {"positions": {k: sorted(v) for k, v in out.items()}}


for line in sys.stdin:
    command = json.loads(line)
    print(json.dumps(values(command) if "columns" in command else positions(command)), flush=True)
