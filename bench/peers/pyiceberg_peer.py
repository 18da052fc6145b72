"""A PyIceberg process that a benchmark keeps: one JSON command per input line, one JSON answer per output line.

{"table": "…/v2.metadata.json"}   opens a table, answers the version
    "from": folder, "to": uri     reads what lies below the folder from there instead
    "endpoint": url               of that S3 service
{"filter": "id > 5"}              plans a scan; answers seconds, the number of files and a checksum of their paths
{"id": 5}                         looks an id up; answers seconds, rows and a checksum
"""

import hashlib
import json
import sys
import time

import pyiceberg
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

COLUMNS = ("user", "city", "amount")


class Elsewhere(PyArrowFileIO):
    """Reads paths below one place from another."""

    def new_input(self, location):
        return super().new_input(location.replace(self.properties["from"], self.properties["to"], 1))


def open_table(command):
    if "to" not in command:
        return StaticTable.from_metadata(command["table"])
    return StaticTable.from_metadata(
        command["table"],
        properties={
            "py-io-impl": "__main__.Elsewhere", "from": command["from"], "to": command["to"],
            "s3.endpoint": command["endpoint"], "s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "us-east-1",
        },
    )


table = None
for line in sys.stdin:
    command = json.loads(line)
    if "table" in command:
        table = open_table(command)
        answer = {"version": pyiceberg.__version__}
    elif "id" in command:
        start = time.perf_counter()
        found = table.scan(row_filter=f"id = {command['id']}", selected_fields=COLUMNS).to_arrow().to_pylist()
        seconds = time.perf_counter() - start
        lines = sorted("|".join(str(r[c]) for c in COLUMNS) for r in found)
        digest = hashlib.sha256("\n".join(lines).encode())
        answer = {"seconds": [seconds], "rows": len(lines), "first": lines[:1], "digest": digest.hexdigest()}
    else:
        start = time.perf_counter()
        paths = sorted(task.file.file_path for task in table.scan(row_filter=command["filter"]).plan_files())
        seconds = time.perf_counter() - start
        digest = hashlib.sha256("\n".join(paths).encode())
        answer = {"seconds": [seconds], "rows": len(paths), "digest": digest.hexdigest()}
    print(json.dumps(answer), flush=True)
