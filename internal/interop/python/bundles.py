"""Prints what PyIceberg's Puffin reader finds in the files named as arguments, one blob a line."""

import hashlib
import sys

from pyiceberg.table.puffin import PuffinFile

for path in sys.argv[1:]:
    with open(path, "rb") as f:
        file = PuffinFile(f.read())
    for b in file.footer.blobs:
        print(b.type, b.fields, b.snapshot_id, b.sequence_number, b.offset, b.length, hashlib.sha256(file.get_blob_payload(b)).hexdigest())
