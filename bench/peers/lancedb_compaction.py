"""LanceDB's optimize over a table of many fragments, with scalar indexes and without any: one JSON command per input line, one JSON answer per
output line.

{"compact": folder, "parquet": folder}   appends every Parquet file as a fragment of its own to two tables, one of which gets a BTREE index
                                         of id and a BITMAP index of city; both are kept. Answers the seconds of optimize on a copy of each:
                                         with indexes, without.
{"id": 5, "city": "x"}                   how many rows of the optimized table have the id, and how many the city, and what reads them
"""

import json
import os
import shutil
import sys
import time

import lancedb
import pyarrow.parquet as pq
from lancedb.index import Bitmap, BTree


def build(folder, parquet):
    if os.path.exists(os.path.join(folder, "ready")):
        return
    shutil.rmtree(folder, ignore_errors=True)
    db = lancedb.connect(folder)
    for name in ["plain", "indexed"]:
        table = None
        for file in sorted(os.listdir(parquet)):
            data = pq.read_table(os.path.join(parquet, file))
            if table is None:
                table = db.create_table(name, data=data)
            else:
                table.add(data)
        if name == "indexed":
            table.create_index("id", config=BTree())
            table.create_index("city", config=Bitmap())
    open(os.path.join(folder, "ready"), "w").close()


def optimize(folder, name):
    copy = folder + "-copy"
    shutil.rmtree(copy, ignore_errors=True)
    os.makedirs(copy)
    shutil.copytree(os.path.join(folder, name + ".lance"), os.path.join(copy, name + ".lance"))
    table = lancedb.connect(copy).open_table(name)
    before = time.perf_counter(), time.process_time()
    table.optimize()
    return time.perf_counter() - before[0], time.process_time() - before[1], table


for line in sys.stdin:
    command = json.loads(line)
    answer = {"version": lancedb.__version__, "seconds": []}
    if "compact" in command:
        build(command["compact"], command["parquet"])
        plain, plain_cpu, _ = optimize(command["compact"], "plain")
        indexed, indexed_cpu, table = optimize(command["compact"], "indexed")
        answer["seconds"] = [indexed, plain, indexed_cpu, plain_cpu]
        answer["rows"] = table.stats()["fragment_stats"]["num_fragments"]
        answer["first"] = [f"{i.index_type} of {table.index_stats(i.name).num_indexed_rows} rows" for i in table.list_indices()]
    else:
        plans = table.search().where(f"id = {command['id']}").explain_plan() + table.search().where(f"city = '{command['city']}'").explain_plan()
        answer["rows"] = table.count_rows(f"id = {command['id']}") + table.count_rows(f"city = '{command['city']}'")
        answer["first"] = [str(plans.count("ScalarIndexQuery"))]
    print(json.dumps(answer), flush=True)
