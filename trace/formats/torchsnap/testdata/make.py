"""Makes the sample snapshots in this folder, and expected.json.

Run it here, with the recorded workloads beside the checkout:  python3 make.py
The cut samples are the last entries of a real recording (mlp), as a ring buffer
of that size would have kept them; the others have the layout that PyTorch writes.
expected.json is worked out here on its own: from what is active at the end,
walking the entries backwards.
"""
import gzip, json, lzma, pickle, os

shared = os.path.join("..", "..", "..", "..", "shared", "traces")
T = 1_700_000_000_000_000  # us


def entry(action, addr, size, us=None, stream=0, **more):
    e = {"action": action, "addr": addr, "size": size, "stream": stream}
    if action == "oom":
        e["device_free"] = e.pop("addr")
    if us is not None:
        e["time_us"] = T + us
    e.update(more)
    return e


def segment(device, address, total, blocks, **more):
    s = {"device": device, "address": address, "total_size": total, "stream": 0,
         "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": []}
    s.update(more)
    s["blocks"] = [{"address": a, "size": (n + 511) // 512 * 512, "requested_size": n, "state": st, "frames": []} for a, n, st in blocks]
    return s


def snapshot(segments, traces, notes=()):
    return {"segments": segments, "device_traces": traces,
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0},
            "external_annotations": list(notes)}


def expect(d):
    out = []
    for n, tr in enumerate(d["device_traces"]):
        live = {b["address"]: b["requested_size"] for s in d["segments"] if s["device"] == n
                for b in s["blocks"] if b["state"] == "active_allocated"}
        for e in reversed(tr):
            if e["action"] == "alloc":
                live.pop(e["addr"])
            elif e["action"] == "free_requested":
                live[e["addr"]] = e["size"]
        now = peak = sum(live.values())
        for e in tr:
            now += {"alloc": e["size"], "free_requested": -e["size"]}.get(e["action"], 0)
            peak = max(peak, now)
        out.append({"before_objects": len(live), "before_bytes": sum(live.values()), "peak": peak, "end": now,
                    "allocs": len(live) + sum(e["action"] == "alloc" for e in tr),
                    "drops": sum(e["action"] == "free_requested" for e in tr)})
    return out


real = pickle.loads(gzip.open(os.path.join(shared, "mlp.snapshot.pickle.gz")).read())
first = real["device_traces"][0][-90]["time_us"]
cut = dict(real, device_traces=[real["device_traces"][0][-90:]],
           external_annotations=[a for a in real["external_annotations"] if a["time_us"] >= first])

frame = {"filename": "train.py", "line": 7, "name": "step"}
frames = [frame, frame]
A, B, C = 0x7F0000000000, 0x7F1000000000, 0x7F2000000000
devices = snapshot(
    [segment(0, A, 4096, [(A, 1000, "active_allocated"), (A + 1024, 500, "active_allocated"), (A + 2048, 2048, "inactive")]),
     segment(1, B, 8192, [(B, 3000, "active_allocated"), (B + 3072, 600, "active_pending_free")])],
    [[entry("segment_alloc", A, 4096, 0), entry("alloc", A, 1000, 1, frames=frames), entry("alloc", A + 1024, 500, 20, 0x55AA, frames=frames)],
     [entry("free_requested", B + 3072, 600, 5), entry("alloc", B, 3000, 10), entry("snapshot", 0, 0, 30)]],
    [{"stage": "START", "name": "step", "device": 0, "time_us": T}, {"stage": "END", "name": "step", "device": 0, "time_us": T + 9}])
notime = snapshot(
    [segment(0, A, 4096, [(A, 512, "active_allocated")])],
    [[entry("alloc", A + 512, 100), entry("free_requested", A + 512, 100), entry("free_completed", A + 512, 100), entry("alloc", A + 512, 200),
      entry("free_requested", A + 512, 200)]])
oom = snapshot(
    [segment(0, A, 2097152, [(A, 700, "active_allocated")])],
    [[entry("segment_alloc", A, 2097152, 0), entry("alloc", A, 700, 3), entry("oom", 123456, 99 << 30, 5), entry("alloc", A + 1024, 8, 7), entry("free_requested", A + 1024, 8, 8)]])
expandable = snapshot(
    [segment(0, C, 3 * 2097152, [(C, 2097152, "active_allocated"), (C + 2 * 2097152, 10, "active_allocated")], is_expandable=True)],
    [[entry("segment_map", C, 2 * 2097152, 0), entry("alloc", C, 2097152, 1), entry("alloc", C + 2097152, 2000000, 2),
      entry("free_requested", C + 2097152, 2000000, 3), entry("free_completed", C + 2097152, 2000000, 3),
      entry("segment_unmap", C + 2097152, 2097152, 4), entry("segment_map", C + 2097152, 2 * 2097152, 6), entry("alloc", C + 2 * 2097152, 10, 7)]])

samples = {"cut": cut, "devices": devices, "notime": notime, "oom": oom, "expandable": expandable}
for name, d in samples.items():
    with open(name + ".p4.pickle", "wb") as f:
        pickle.dump(d, f, protocol=4)
for protocol in 0, 1, 2, 3, 5:
    with open(f"devices.p{protocol}.pickle", "wb") as f:
        pickle.dump(devices, f, protocol=protocol)
with open("cut.p2.pickle", "wb") as f:
    pickle.dump(cut, f, protocol=2)
with open("devices.p4.pickle.gz", "wb") as f:
    f.write(gzip.compress(pickle.dumps(devices, protocol=4), mtime=0))


class Evil:
    def __reduce__(self):
        return (os.system, ("true",))


with open("global.p4.bad", "wb") as f:
    pickle.dump(dict(devices, extra=Evil()), f, protocol=4)
with open("global.p0.bad", "wb") as f:
    pickle.dump(dict(devices, extra=Evil()), f, protocol=0)
with open("expected.json", "w") as f:
    json.dump({name: expect(d) for name, d in samples.items()}, f, indent=1)
    f.write("\n")
