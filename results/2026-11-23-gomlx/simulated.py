"""Simulated against live: python3 simulated.py PATH_OF_REPLAY. Cycles and ms that callers were held, for 100 steps."""
import json, os, statistics, subprocess, sys
from table import read
os.environ["LC_ALL"] = "C"
STEPS = {"array": 83, "dense": 83, "serve": 84}
NAMES = {"array": "array", "dense": "dense", "serve": "infer"}
cells = read(["cells.bench"])
agree = {"cycles": [], "order": 0, "groups": 0}
print(f"{'':28} {'cycle':>7} {'cycles, simulated':>18} {'live':>7} {'held ms, simulated':>19} {'live':>8}")
for program in STEPS:
    for heap in (0, 256, 1024):
        for limit in (4, 1.5):
            held = {}
            for policy, live in (("never", "never"), ("cudajl", "cudajl"), ("pacer", "default")):
                runs = cells[program, heap, limit, live]
                cycle = statistics.median(r["cycle-ns"] for r in runs)
                out = subprocess.run([sys.argv[1], "run", NAMES[program], "--policy", policy, "--limit", f"{limit}x", "--cycle", f"{cycle:.0f}ns", "--ladder", "1x", "--json"], capture_output=True, text=True, check=True).stdout
                sim = json.loads(out.splitlines()[0])
                s = 100 / STEPS[program]
                n = (sim["collections"] + sim["refusal_collections"]) * s
                m = statistics.median(r["gc-cycles"] * 100 / r["steps"] for r in runs)
                e, f = sim["exposed_pause_ns"] / 1e6 * s, statistics.median(r["exposed-ns"] / 1e6 * 100 / r["steps"] for r in runs)
                held[policy] = e, f
                agree["cycles"].append(abs(n - m) <= 0.15 * max(n, m) + 1)
                print(f"{program:6} {heap:5} MiB {limit:4}x {policy:7} {cycle/1e6:7.1f} {n:18.0f} {m:7.0f} {e:19.0f} {f:8.0f}")
            agree["groups"] += 1
            agree["order"] += min(held, key=lambda p: held[p][0]) == min(held, key=lambda p: held[p][1])
print(f"cycles within 15 %: {sum(agree['cycles'])} of {len(agree['cycles'])}; least held by the same policy: {agree['order']} of {agree['groups']} groups")
