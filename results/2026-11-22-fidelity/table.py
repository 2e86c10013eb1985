"""How far simulations agree with live runs: python3 table.py [--as PREFIX] FILE..., JSON lines, gzip or not.

A live run has its policy's name; its simulation has the same with PREFIX before it: "sim:" (default), "said:".
"""
import collections, gzip, itertools, json, sys

BUILT_IN = set("burst gnn gp gpt2 mlp ppo rcnn resnet serve spectral vit".split())


def load(prefix, files):
    live, sim = {}, {}
    for name in files:
        with (gzip.open if name.endswith(".gz") else open)(name, "rt") as f:
            for r in map(json.loads, f):
                policy, into = r["policy"], live
                if policy.startswith(prefix): policy, into = policy[len(prefix):], sim
                elif ":" in policy.split("=")[0] and policy.split(":")[0] in ("sim", "said"): continue
                into[r.get("where", "host"), r["ballast"], r.get("run", "1"), r["trace"], round(r["limit_factor"] * 2) / 2, policy] = r
    return live, sim


def cycles(r): return r["collections"] + r["refusal_collections"]
def off(live, sim): return (sim - live) / live if live else (0 if sim == live else 9.9)


CRITERIA = {
    "cycles within 10 %": (.9, lambda l, s: abs(off(cycles(l), cycles(s))) <= .1),
    "exposed within 25 % or 5 ms": (.8, lambda l, s: abs(s["exposed_pause_ns"] - l["exposed_pause_ns"]) <= max(5e6, .25 * l["exposed_pause_ns"])),
    "p99 pause within 25 %": (.7, lambda l, s: abs(off(l["p99_pause_ns"], s["p99_pause_ns"])) <= .25),
    "peak within 2 %": (.95, lambda l, s: abs(off(l["peak_live_bytes"], s["peak_live_bytes"])) <= .02),
    "elapsed within 3 %": (.95, lambda l, s: abs(off(l["elapsed_ns"], s["elapsed_ns"])) <= .03),
    "failures exact +-10 %": (1, lambda l, s: abs(s["failed_allocs"] - l["failed_allocs"]) <= .1 * l["failed_allocs"]),
}


def order(live, sim, keys):
    kept = of = 0
    for _, some in itertools.groupby(sorted(keys), key=lambda k: k[:5]):
        for a, b in itertools.combinations(list(some), 2):
            d = live[a]["exposed_pause_ns"] - live[b]["exposed_pause_ns"]
            if abs(d) > 5e6:
                of += 1
                kept += (sim[a]["exposed_pause_ns"] - sim[b]["exposed_pause_ns"]) * d > 0
    return kept, of


def report(live, sim, keys, name):
    if not keys: return
    print(name, len(keys), "cells")
    for c, (wanted, ok) in CRITERIA.items():
        n = sum(ok(live[k], sim[k]) for k in keys)
        print(f"  {c}: {n} of {len(keys)} ({n / len(keys):.1%}), wanted {wanted:.0%}")
    kept, of = order(live, sim, keys)
    if of: print(f"  order of pairs that differ by more than 5 ms: {kept} of {of} ({kept / of:.1%})")


def cells(live, sim, keys):
    for k in sorted(keys):
        l, s = live[k], sim[k]
        pair = lambda f, form, by=1: (form + " " + form) % (f(l) / by, f(s) / by)
        lost = f"lost {l.get('lost_ns', 0) / 1e6:.0f} alone {l.get('lost_alone_ns', 0) / 1e6:.0f} said {(s['elapsed_ns'] - s['span_ns'] - s['exposed_pause_ns']) / 1e6:.0f}" if k[2] in ("compute", "alone") else ""
        print(*k, "cyc", pair(cycles, "%d"), "exp", pair(lambda r: r["exposed_pause_ns"], "%.0f", 1e6), "p99", pair(lambda r: r["p99_pause_ns"], "%.1f", 1e6),
            "el", pair(lambda r: r["elapsed_ns"], "%.2f", 1e9), "cycle", pair(lambda r: r["gc_busy_ns"] / max(1, cycles(r)), "%.1f", 1e6), lost,
            *[c.split()[0] for c, (_, ok) in CRITERIA.items() if not ok(l, s)])


if __name__ == "__main__":
    args = sys.argv[1:]
    prefix = args.pop(1) if args[0] == "--as" else "sim:"
    live, sim = load(prefix, [a for a in args if a != "--as"])
    both = [k for k in live if k in sim]
    for seen in (True, False):
        some = [k for k in both if k[2] == "1" and (k[3] in BUILT_IN) == seen]
        name = "built in" if seen else "never seen"
        report(live, sim, some, name)
        for place in sorted({k[:2] for k in some}): report(live, sim, [k for k in some if k[:2] == place], f"{name}, {' '.join(place)}")
    first = {k[:2] + k[3:]: live[k] for k in live if k[2] == "1"}
    again = {k[:2] + k[3:]: live[k] for k in live if k[2] == "2"}
    for place in sorted({k[:2] for k in again}):
        report(first, again, [k for k in again if k in first and k[:2] == place], f"two live runs of a cell, {' '.join(place)}")
    report(first, again, [k for k in again if k in first], "two live runs of a cell")
    cells(live, sim, both)
