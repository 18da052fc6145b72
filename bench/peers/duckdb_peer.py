"""A DuckDB process that a benchmark keeps: one JSON command per input line, one JSON answer per output line.

{"threads": 2}            sets the number of threads and switches the Parquet metadata cache on
{"sql": "...", "n": 1}    runs a query n times; answers seconds per run, rows and a checksum of the rows of the last run
"""

import hashlib
import json
import sys
import time

import duckdb

con = duckdb.connect()
for line in sys.stdin:
    command = json.loads(line)
    if "threads" in command:
        con.execute(f"SET threads={int(command['threads'])}")
        con.execute("SET parquet_metadata_cache=true")
        answer = {"version": duckdb.__version__}
    else:
        seconds = []
        for _ in range(command.get("n", 1)):
            start = time.perf_counter()
            rows = con.execute(command["sql"]).fetchall()
            seconds.append(time.perf_counter() - start)
        digest = hashlib.sha256("\n".join(sorted("|".join(map(str, r)) for r in rows)).encode())
        answer = {"seconds": seconds, "rows": len(rows), "first": [str(x) for x in rows[0]] if rows else [], "digest": digest.hexdigest()}
    print(json.dumps(answer), flush=True)
