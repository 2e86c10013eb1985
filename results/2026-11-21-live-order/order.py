#!/usr/bin/env python3
# Compares the order of policies by exposed pause, live and simulated, in
# a file with pairs of lines: live, then simulated ("replay live --cost" writes such).
import itertools, json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
table = {}
for live, model in zip(rows[::2], rows[1::2]):
    assert model["policy"] == "sim:" + live["policy"] and model["trace"] == live["trace"]
    table.setdefault(live["trace"], []).append((live["policy"], live["exposed_pause_ns"] / 1e6, model["exposed_pause_ns"] / 1e6, live["gc_busy_ns"] / 1e6, live["refusal_collections"], live["failed_allocs"]))
print("| workload | order live | order simulated | exposed live (ms) | pairs turned round |\n|---|---|---|---|---|")
for trace, runs in table.items():
    live = sorted(runs, key=lambda r: r[1])
    model = sorted(runs, key=lambda r: r[2])
    turned = []
    for a, b in itertools.combinations(runs, 2):
        if (a[1] - b[1]) * (a[2] - b[2]) < 0:
            turned.append("%s/%s (live %.0f/%.0f, simulated %.0f/%.0f)" % (a[0], b[0], a[1], b[1], a[2], b[2]))
    name = lambda rs: " ".join(r[0] for r in rs)
    print("| %s | %s | %s | %s | %s |" % (trace, name(live), name(model), " ".join("%.0f" % r[1] for r in live), "; ".join(turned) or "none"))
