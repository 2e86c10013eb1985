"""Prints the table of README.md from live.jsonl and own-cost.jsonl."""
import json

lines = [json.loads(line) for line in open("live.jsonl")]
own_cost = [json.loads(line) for line in open("own-cost.jsonl")]


def cycles(r):
    return f"{r['collections']}+{r['refusal_collections']}"


def off(here, there):
    return f"{100 * (here - there) / there:+.1f} %" if there else "0"


def total(r):
    return r["collections"] + r["refusal_collections"]


print("| workload | policy | limit | cycles live | simulated | off | exposed live | simulated | off | peak live off | a cycle took | exposed at the calibrated cost |")
print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
for live, calibrated, sim in zip(lines[0::2], lines[1::2], own_cost):
    print("|", " | ".join([
        live["trace"], live["policy"], f"{live['limit_factor']:.3g}x",
        cycles(live), cycles(sim), off(total(live), total(sim)),
        f"{live['exposed_pause_ns'] / 1e9:.2f} s", f"{sim['exposed_pause_ns'] / 1e9:.2f} s",
        off(live["exposed_pause_ns"], sim["exposed_pause_ns"]),
        off(live["peak_live_bytes"], sim["peak_live_bytes"]),
        f"{live['cycle_ns'] / 1e6:.0f} ms",
        f"{calibrated['exposed_pause_ns'] / 1e9:.2f} s",
    ]), "|")
