"""How far simulations agree with live runs: python3 table.py [FILE], JSON lines, gzip or not.

A cell is a recording's begin in one place, under one limit and policy. It was run three times; a measured value is the median of
the three, a simulated one that of the three simulations, each of which was said before its run. A simulation has "sim:" before the
name of its policy.
"""
import collections, gzip, itertools, json, statistics, sys

BUILT_IN = set("burst gnn gp gpt2 mlp ppo rcnn resnet serve spectral vit".split())
VALUES = "cycles exposed_pause_ns p99_pause_ns peak_live_bytes elapsed_ns failed_allocs gc_busy_ns".split()


def load(file):
    """Returns, by kind (live, sim) and cell, the runs by number."""
    all = {kind: collections.defaultdict(dict) for kind in ("live", "sim")}
    with (gzip.open if file.endswith(".gz") else open)(file, "rt") as f:
        for r in map(json.loads, f):
            kind, policy = ("sim", r["policy"][4:]) if r["policy"].startswith("sim:") else ("live", r["policy"])
            r["cycles"] = r["collections"] + r["refusal_collections"]
            all[kind][r["where"], r["ballast"], r["trace"], r["limit_factor"], policy][r["run"]] = r
    return all


def median(runs): return {v: statistics.median(r[v] for r in runs.values()) for v in VALUES}
def off(live, sim): return (sim - live) / live if live else (0 if sim == live else 9.9)


CRITERIA = {
    "cycles": lambda l, s: abs(off(l["cycles"], s["cycles"])) <= .1,
    "exposed": lambda l, s: abs(s["exposed_pause_ns"] - l["exposed_pause_ns"]) <= max(5e6, .25 * l["exposed_pause_ns"]),
    "p99": lambda l, s: abs(off(l["p99_pause_ns"], s["p99_pause_ns"])) <= .25,
    "peak": lambda l, s: abs(off(l["peak_live_bytes"], s["peak_live_bytes"])) <= .02,
    "elapsed": lambda l, s: abs(off(l["elapsed_ns"], s["elapsed_ns"])) <= .03,
    "failures": lambda l, s: abs(s["failed_allocs"] - l["failed_allocs"]) <= .1 * l["failed_allocs"],
}


def order(live, sim, cells):
    kept = of = 0
    for _, some in itertools.groupby(sorted(cells), key=lambda k: k[:4]):
        for a, b in itertools.combinations(list(some), 2):
            d = live[a]["exposed_pause_ns"] - live[b]["exposed_pause_ns"]
            if abs(d) > 5e6:
                of += 1
                kept += (sim[a]["exposed_pause_ns"] - sim[b]["exposed_pause_ns"]) * d > 0
    return f"{100 * kept / of:6.1f} of {of}" if of else "     -"


def line(name, live, sim, cells):
    if cells:
        print(f"{name:34s} {len(cells):5d}", *[f"{100 * sum(ok(live[k], sim[k]) for k in cells) / len(cells):8.1f}" for ok in CRITERIA.values()], order(live, sim, cells))


def cell(k, live, sim, paces):
    pair = lambda v, form, by=1: (form + " " + form) % (live[v] / by, sim[v] / by)
    cycle = [r["gc_busy_ns"] / max(1, r["cycles"]) / 1e6 for r in (live, sim)]
    print(*k, "cyc", pair("cycles", "%d"), "exp", pair("exposed_pause_ns", "%.0f", 1e6), "p99", pair("p99_pause_ns", "%.1f", 1e6), "el", pair("elapsed_ns", "%.2f", 1e9),
        "cycle %.1f %.1f" % tuple(cycle), "pace", *["%.2f" % p for p in paces], *[c for c, ok in CRITERIA.items() if not ok(live, sim)])


if __name__ == "__main__":
    runs = load(sys.argv[1] if len(sys.argv) > 1 else "live.jsonl.gz")
    cells = sorted(k for k in runs["live"] if len(runs["live"][k]) == 3)
    live, sim = [{k: median(runs[kind][k]) for k in cells} for kind in ("live", "sim")]
    seen = [k for k in cells if k[2] in BUILT_IN]
    new = [k for k in cells if k[2] not in BUILT_IN]
    print(" " * 40, *[f"{c:>8s}" for c in CRITERIA], "   order")
    for name, some in (("built in", seen), ("never seen", new)):
        line(name, live, sim, some)
        for place in sorted({k[:2] for k in some}): line(f"{name}, {' '.join(place)}", live, sim, [k for k in some if k[:2] == place])
    for policy in "never cudajl sqrt pacer".split():
        for name, some in (("", cells), (", built in", seen), (", never seen", new)): line(policy + name, live, sim, [k for k in some if k[4] == policy])
    line("all but pacer", live, sim, [k for k in cells if k[4] != "pacer"])
    one = lambda kind, n: {k: runs[kind][k][n] for k in cells}
    for some, name in ((cells, ""), ([k for k in cells if k[4] == "pacer"], ", pacer")):
        for a, b in ("12", "23", "13"): line(f"live run {a}, live run {b}{name}", one("live", a), one("live", b), some)
        line("live run 1, its simulation" + name, one("live", "1"), one("sim", "1"), some)
    for place in sorted({k[:2] for k in cells}):
        some = [k for k in cells if k[:2] == place]
        line(f"live run 1, live run 2, {' '.join(place)}", one("live", "1"), one("live", "2"), some)
    print("\nwhat differs by how much: simulated over live, the middle and nine of ten cells within")
    for policy in "never cudajl sqrt pacer".split():
        for place in sorted({k[:2] for k in cells}):
            some = [k for k in cells if k[:2] == place and k[4] == policy and live[k]["cycles"] and sim[k]["cycles"]]
            each = sorted((sim[k]["gc_busy_ns"] / sim[k]["cycles"]) / (live[k]["gc_busy_ns"] / live[k]["cycles"]) for k in some)
            sums = [sum(m[k][v] for k in some) for v in ("cycles", "exposed_pause_ns", "gc_busy_ns") for m in (live, sim)]
            print(f"{policy:7s} {' '.join(place):12s} length of a cycle {statistics.median(each):.3f}, {each[len(each) // 20]:.2f} to {each[-1 - len(each) // 20]:.2f}; in all: cycles {sums[0]:.0f} {sums[1]:.0f}, exposed {sums[2] / 1e9:.1f} {sums[3] / 1e9:.1f} s, collector {sums[4] / 1e9:.1f} {sums[5] / 1e9:.1f} s")
    print("\nrecording, limit, policy: live and simulated; pauses in ms, elapsed in s, a cycle in ms; what was missed")
    for k in cells: cell(k, live[k], sim[k], [r["pace"] for _, r in sorted(runs["sim"][k].items())])
