"""Prints the table of README.md from live.jsonl and own-cost.jsonl."""
import json

lines = [json.loads(line) for line in open("live.jsonl")]
own_cost = [json.loads(line) for line in open("own-cost.jsonl")]


def cycles(r):
    return f"{r['collections']}+{r['refusal_collections']}"


def off(live, sim, value):
    here, there = value(live), value(sim)
    return f"{100 * (here - there) / there:+.1f} %" if there else "0"


def total(r):
    return r["collections"] + r["refusal_collections"]


def exposed(r):
    return r["exposed_pause_ns"]


def peak(r):
    return r["peak_live_bytes"]


print("| workload | policy | limit | cycles live | calibrated | own | off calibrated | off own | exposed live (s) | calibrated | own | off calibrated | off own | peak live off calibrated | off own | a cycle took (ms) |")
print("|---|---|---|" + "--:|" * 13)
for live, sim, own in zip(lines[0::2], lines[1::2], own_cost):
    print("|", " | ".join([
        live["trace"], live["policy"], f"{live['limit_factor']:.3g}x",
        cycles(live), cycles(sim), cycles(own), off(live, sim, total), off(live, own, total),
        f"{exposed(live) / 1e9:.2f}", f"{exposed(sim) / 1e9:.2f}", f"{exposed(own) / 1e9:.2f}",
        off(live, sim, exposed), off(live, own, exposed),
        off(live, sim, peak), off(live, own, peak), f"{live['cycle_ns'] / 1e6:.0f}",
    ]), "|")
