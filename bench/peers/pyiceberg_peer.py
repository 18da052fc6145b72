"""A PyIceberg process that a benchmark keeps: one JSON command per input line, one JSON answer per output line.

{"table": "…/v2.metadata.json"}   opens a table, answers the version
{"filter": "id > 5"}              plans a scan; answers seconds, the number of files and a checksum of their paths
"""

import hashlib
import json
import sys
import time

import pyiceberg
from pyiceberg.table import StaticTable

table = None
for line in sys.stdin:
    command = json.loads(line)
    if "table" in command:
        table = StaticTable.from_metadata(command["table"])
        answer = {"version": pyiceberg.__version__}
    else:
        start = time.perf_counter()
        paths = sorted(task.file.file_path for task in table.scan(row_filter=command["filter"]).plan_files())
        seconds = time.perf_counter() - start
        digest = hashlib.sha256("\n".join(paths).encode())
        answer = {"seconds": [seconds], "rows": len(paths), "digest": digest.hexdigest()}
    print(json.dumps(answer), flush=True)
