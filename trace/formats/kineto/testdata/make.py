"""Makes the sample profiles in this folder from the recorded workloads.

Run it here, with the workloads beside the checkout:  python3 make.py
Events are kept as they are written, in the order of the file.
"""
import gzip, json, os
from decimal import Decimal

shared = os.path.join("..", "..", "..", "..", "shared", "traces")


def load(name):
    return json.loads(gzip.open(os.path.join(shared, name)).read(), parse_float=Decimal)


def dump(d):
    class E(json.JSONEncoder):
        def default(self, o):
            return "\0" + str(o) + "\0"
    return json.dumps(d, cls=E, separators=(",", ":")).replace('"\\u0000', "").replace('\\u0000"', "").encode() + b"\n"


def keep(d, events):
    return dump(dict(d, traceEvents=events))


full = load("gp-full.kineto.json.gz")
memory = sorted((e["ts"] for e in full["traceEvents"] if e["name"] == "[memory]"))
low, high = memory[-40], memory[-1]
last = [e for e in full["traceEvents"] if low <= e.get("ts", 0) <= high + 100]
with open("last.json", "wb") as f:  # what was live before is not in it
    f.write(keep(full, last))

sync = load("mlp.sync.kineto.json.gz")
with open("sync.json.gz", "wb") as f:
    f.write(gzip.compress(keep(sync, [e for e in sync["traceEvents"] if e["ph"] != "M"]), mtime=0))

base = {"schemaVersion": 1, "baseTimeNanoseconds": 1_700_000_000_000_000_000}


def mem(ts, addr, n, total, reserved=4096, device=0, kind=1, name="[memory]"):
    args = {"Total Reserved": reserved, "Total Allocated": total, "Bytes": n, "Device Id": device, "Device Type": kind, "Addr": addr, "Ev Idx": 1}
    if name != "[memory]":
        del args["Addr"]
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": name, "pid": 1, "tid": 1, "ts": Decimal(ts), "args": args}


with open("devices.json", "wb") as f:
    f.write(keep(base, [
        mem("20.5", 1000, 512, 512, device=1), mem("10.0005", 2000, 100, 300), mem("11", 3000, -200, 100), mem("12", 2000, -100, 0, 8192),
        mem("13", 7, 64, 64, device=-1, kind=0), mem("14", 0, 1 << 40, 0, name="[OutOfMemory]"),
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaEventSynchronize", "pid": 1, "tid": 2, "ts": Decimal("12.000"), "dur": Decimal("0.25"), "args": {}},
        {"ph": "X", "cat": "user_annotation", "name": "step \"1\" \u00e9", "pid": 1, "tid": 1, "ts": Decimal("9.5"), "dur": Decimal("2"), "args": {}},
    ]))
