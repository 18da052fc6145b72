"""Prints the data files that PyIceberg plans for every snapshot of the metadata files named as arguments."""

import sys

from pyiceberg.table import StaticTable

for path in sys.argv[1:]:
    table = StaticTable.from_metadata(path)
    for snapshot in table.snapshots():
        for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files():
            f = task.file
            print(path, snapshot.snapshot_id, f.file_path, f.record_count, f.file_size_in_bytes, len(f.partition), sep="\t")
