#!/usr/bin/env python3
"""Ranks policies by the time lost, here and on the recordings of ../2026-11-21-compare.

Time lost is as compare prints it: the geometric mean over recordings and limits of
1 + (exposed pause + 0.05 x collector time) / recorded time, less 1.
"""
import json
import math
import os

here = os.path.dirname(os.path.abspath(__file__))
GO = {"thumb", "matrix", "wasm", "arrow", "query"}


def load(path):
    with open(os.path.join(here, path)) as f:
        return [json.loads(line) for line in f]


def lost(rows, cycle, traces):
    logs = {}
    for r in rows:
        if r["cycle_ns"] == cycle and r["trace"] in traces and not r["policy"].startswith("optimum"):
            share = (r["exposed_pause_ns"] + 0.05 * r["gc_busy_ns"]) / r["span_ns"]
            logs.setdefault(r["policy"], []).append(math.log1p(share))
    return {p: math.expm1(sum(x) / len(x)) for p, x in logs.items()}


def ranks(values):
    """Ranks from 1; equal values share the mean of theirs."""
    order = sorted(values.values())
    return {p: order.index(v) + (order.count(v) + 1) / 2 for p, v in values.items()}


def spearman(a, b):
    a, b = ranks(a), ranks(b)
    mean = (len(a) + 1) / 2
    cov = sum((a[p] - mean) * (b[p] - mean) for p in a)
    return cov / math.sqrt(sum((x - mean) ** 2 for x in a.values()) * sum((x - mean) ** 2 for x in b.values()))


def name(ns):
    return "%g ms" % (ns / 1e6)


c, known = load("results.json"), load("../2026-11-21-compare/results.json")
programs = list(dict.fromkeys(r["trace"] for r in c))
others = list(dict.fromkeys(r["trace"] for r in known))
groups = {"PyTorch": [t for t in others if t not in GO], "Go": [t for t in others if t in GO]}
cycles = sorted({r["cycle_ns"] for r in c})

columns = {("C", x): lost(c, x, programs) for x in cycles}
columns.update({(g, x): lost(known, x, groups[g]) for g in groups for x in (1_000_000, 10_000_000)})
print("rank (time lost) of each policy")
print("%-31s" % "" + "".join("%17s" % (g + " " + name(x)) for g, x in columns))
for p in columns["C", cycles[0]]:
    print("%-31s" % p + "".join("%17s" % ("%g (%.2f%%)" % (ranks(v)[p], 100 * v[p])) for v in columns.values()))

print("\nSpearman's rank correlation")
print("%-22s" % "" + "".join("%17s" % (g + " " + name(x)) for g, x in columns))
for (g, x), v in columns.items():
    print("%-22s" % (g + " " + name(x)) + "".join("%17.2f" % spearman(v, w) for w in columns.values()))
for t in programs:
    for x in cycles:
        print("%-22s" % (t + " " + name(x)) + "".join("%17.2f" % spearman(lost(c, x, [t]), w) for w in columns.values()))
print("\neach of the 16 others against the mean of the rest of its kind, 1 ms")
for g, all in groups.items():
    print(g, " ".join("%s %.2f" % (t, spearman(lost(known, 1_000_000, [t]), lost(known, 1_000_000, [u for u in all if u != t]))) for t in all))
print("\nwithout the first and the last of all columns, pacer and rtorch: C against the others")
for (g, x), w in columns.items():
    if g != "C":
        kept = [p for p in w if p not in ("pacer", "rtorch")]
        print("%-15s" % (g + " " + name(x)) + "".join("  C %s %.2f" % (name(y), spearman({p: columns["C", y][p] for p in kept}, {p: w[p] for p in kept})) for y in cycles))
print("\nleast and second least time lost, by program; failed allocations of all policies")
for t in programs:
    for x in cycles:
        v = lost(c, x, [t])
        first, second = sorted(v, key=v.get)[:2]
        failed = sum(r["failed_allocs"] for r in c if r["trace"] == t and r["cycle_ns"] == x)
        print("%-8s %-7s %s %.2f%%, %s %.2f%%; %d" % (t, name(x), first, 100 * v[first], second, 100 * v[second], failed))
