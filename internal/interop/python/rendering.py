"""How a value and a case are written, so that the Go side can compare: see package interop."""

import datetime
import decimal
import json
import struct
import uuid

EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)


def text(v):
    if v is None:
        return "null"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return str(v)
    if isinstance(v, float):
        return "nan" if v != v else "f" + struct.pack(">d", v).hex()
    if isinstance(v, decimal.Decimal):
        sign, digits, exponent = v.as_tuple()
        return f"{int(''.join(map(str, digits))) * (-1 if sign else 1)}e{exponent}"
    if isinstance(v, str):
        return json.dumps(v, ensure_ascii=False)
    if isinstance(v, (bytes, bytearray)):
        return "x" + bytes(v).hex()
    if isinstance(v, uuid.UUID):
        return "x" + v.bytes.hex()
    if isinstance(v, datetime.datetime):
        if v.tzinfo is not None:
            v = v.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return str((v - EPOCH) // MICROSECOND)
    if isinstance(v, datetime.date):
        return str((v - EPOCH.date()).days)
    if isinstance(v, datetime.time):
        return str(((v.hour * 60 + v.minute) * 60 + v.second) * 1000000 + v.microsecond)
    if isinstance(v, list):
        return "[" + ",".join(text(x) for x in v) + "]"
    if isinstance(v, dict):
        return "{" + ",".join(sorted(text(k) + ":" + text(x) for k, x in v.items())) + "}"
    if isinstance(v, tuple):
        return "(" + ",".join(text(x) for x in v) + ")"
    raise TypeError(type(v).__name__)


class Cases:
    """Cases in a file, one JSON object a line."""

    def __init__(self, path):
        self.out = open(path, "w", encoding="utf-8")

    def add(self, table, rows, at="", columns=(), where="", deletes=False):
        self.out.write(json.dumps({
            "table": table, "at": str(at), "columns": list(columns), "where": where, "deletes": deletes,
            "rows": sorted("|".join(text(v) for v in row) for row in rows),
        }, ensure_ascii=False) + "\n")

    def close(self):
        self.out.close()
