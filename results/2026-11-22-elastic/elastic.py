"""How much later is a wait over after a pause of the host? Measured with real kernels, for what replay says of the same
program's profile: each program has points in a step; the profile marks them, the other runs pause at one of them."""
import json, os, statistics, sys, time
import torch
from torch.profiler import profile, record_function, ProfilerActivity

OUT = sys.argv[1]
POINTS, LAUNCHES, STEPS = 5, 40, 15

def spin(s):
    end = time.perf_counter() + s
    while time.perf_counter() < end: pass

def program(sizes):
    weights = {n: torch.randn(n, n, device="cuda") / n**0.5 for n in set(sizes)}
    def step(at=-1, pause=0.0, mark=False):
        x = None
        for k, n in enumerate(sizes):
            if k % (LAUNCHES // POINTS) == 0:
                point = k // (LAUNCHES // POINTS)
                if mark:
                    with record_function(f"point{point}"): pass
                if point == at: spin(pause)
            if x is None or x.shape[0] != n: x = torch.ones(n, n, device="cuda")
            x = torch.relu(x @ weights[n])
            spin(20e-6)
        return x.sum().item()
    return step

PROGRAMS = {
    "device": [1536] * LAUNCHES,                                     # the device is busy, the host far ahead
    "host": [256] * LAUNCHES,                                        # the device waits for each launch
    "late": [256] * (LAUNCHES // 2) + [1536] * (LAUNCHES // 2),      # the host is ahead in the second half
    "early": [1536] * (LAUNCHES // 2) + [256] * (LAUNCHES // 2),     # in the first
    "mixed": ([1024] * 5 + [256] * 5) * (LAUNCHES // 10),
}
rows = []
for name, sizes in PROGRAMS.items():
    step = program(sizes)
    for _ in range(10): step()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        for _ in range(STEPS): step(mark=True)
        torch.cuda.synchronize()
    p.export_chrome_trace(f"/tmp/elastic-{name}.json")
    def timed(at, pause):
        times = []
        for _ in range(STEPS):
            torch.cuda.synchronize()
            began = time.perf_counter()
            step(at, pause)
            times.append(time.perf_counter() - began)
        return times
    for pause in (0.5e-3, 2e-3, 6e-3):
        for at in range(POINTS):
            base, held = timed(-1, 0), timed(at, pause)
            rows.append(dict(program=name, point=at, pause_ns=round(pause * 1e9), steps=STEPS, base_ns=round(statistics.median(base) * 1e9), held_ns=round(statistics.median(held) * 1e9)))
keep = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "user_annotation")
for name in PROGRAMS:
    t = json.load(open(f"/tmp/elastic-{name}.json"))
    t["traceEvents"] = [dict(e, name="k") if e.get("cat") == "kernel" else e for e in t["traceEvents"] if e.get("cat") in keep]
    for e in t["traceEvents"]:
        a = e.get("args", {})
        e["args"] = {k: a[k] for k in ("correlation", "stream", "device", "cbid") if k in a}
    json.dump(t, open(f"{OUT}/elastic-{name}.json", "w"))
with open(f"{OUT}/elastic.jsonl", "w") as f:
    for r in rows: f.write(json.dumps(r) + "\n")
