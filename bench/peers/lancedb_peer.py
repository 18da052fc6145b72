"""A LanceDB process that a benchmark keeps: one JSON command per input line, one JSON answer per output line.

{"build": folder, "parquet": folder}   copies Parquet files into a table and makes a BTree index of its ids; the table is kept
{"open": uri, "endpoint": url}         opens the table through an S3 endpoint
{"id": 5}                              looks an id up, the table open and nothing of its index in memory; answers seconds, rows and a checksum
"""

import hashlib
import json
import os
import sys
import time

import lancedb
import pyarrow.dataset as ds

COLUMNS = ["user", "city", "amount"]


def connect():
    return lancedb.connect(uri, storage_options=options).open_table("events")


for line in sys.stdin:
    command = json.loads(line)
    answer = {"version": lancedb.__version__, "seconds": []}
    if "build" in command:
        folder = command["build"]
        if not os.path.exists(os.path.join(folder, "ready")):
            source = ds.dataset(command["parquet"], format="parquet")
            db = lancedb.connect(folder)
            table = db.create_table("events", data=source.to_batches(columns=["id", *COLUMNS], batch_size=1 << 17), schema=source.scanner(columns=["id", *COLUMNS]).projected_schema, mode="overwrite")
            table.create_scalar_index("id", index_type="BTREE")
            open(os.path.join(folder, "ready"), "w").close()
    elif "open" in command:
        uri = command["open"]
        options = {
            "aws_endpoint": command["endpoint"], "aws_access_key_id": "key", "aws_secret_access_key": "secret", "aws_region": "us-east-1",
            "allow_http": "true", "aws_virtual_hosted_style_request": "false",
        }
    else:
        table = connect()
        start = time.perf_counter()
        rows = table.search().where(f"id = {command['id']}").select(COLUMNS).limit(100).to_list()
        answer["seconds"] = [time.perf_counter() - start]
        lines = sorted("|".join(str(r[c]) for c in COLUMNS) for r in rows)
        answer["rows"], answer["first"] = len(rows), lines[:1]
        answer["digest"] = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    print(json.dumps(answer), flush=True)
