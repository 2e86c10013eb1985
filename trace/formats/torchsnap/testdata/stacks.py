"""Makes stacks.*.p4.pickle.gz and stacks.json, which says what allocated how much.

The snapshots are PyTorch 2.11's own, of a small model's three training steps on
an H200: _record_memory_history(context="all", stacks="python" and "all"), given
as arguments. The names of the files in them are made shorter, and nothing else
is changed. Without arguments only stacks.json is made again. It is worked out
here on its own, from what Python's pickle reads.
"""
import gzip, json, pickle, sys

for arg, name in zip(sys.argv[1:], ("python", "all")):
    s = pickle.load(gzip.open(arg))
    for f in {id(f): f for t in s["device_traces"] for e in t for f in e["frames"]}.values():
        f["filename"] = f["filename"].replace("/opt/torch/.venv/lib/python3.12/site-packages/", "").replace("/tmp/r.py", "train.py")
    for f in {id(f): f for g in s["segments"] for b in g["blocks"] + [g] for f in b["frames"]}.values():
        f["filename"] = f["filename"].replace("/opt/torch/.venv/lib/python3.12/site-packages/", "").replace("/tmp/r.py", "train.py")
    with gzip.GzipFile(f"stacks.{name}.p4.pickle.gz", "wb", 9, mtime=0) as out:
        out.write(pickle.dumps(s, 4))

expected = {}
for name in ("python", "all"):
    s = pickle.load(gzip.open(f"stacks.{name}.p4.pickle.gz"))
    sums = expected[name] = {}
    for e in s["device_traces"][0]:
        if e["action"] == "alloc":
            python = [f for f in e["frames"] if f["filename"].endswith(".py")]
            key = ";".join(f'{f["filename"]}:{f["line"]}' for f in python)
            n, size = sums.get(key, (0, 0))
            sums[key] = (n + 1, size + e["size"])
json.dump(expected, open("stacks.json", "w"), indent=1, sort_keys=True)
