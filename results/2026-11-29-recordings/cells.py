"""Reads the output of replay compare --format csv, and says where pacer loses clearly more than never or a threshold.
Loss is (exposed pause + 0.05 x collector time) / recorded time; J is the geometric mean of 1 + loss. Clearly: by more than 2 % and 0.1 points.
cells.py BEFORE NOW: two such files, the first with never and all thresholds."""
import collections, csv, math, sys


def read(path):
    cells = collections.defaultdict(dict)
    for r in csv.DictReader(open(path)):
        limit = f"{float(r['limit_factor']):.3g}"
        loss = (float(r["exposed_pause_ns"]) + 0.05 * float(r["gc_busy_ns"])) / float(r["span_ns"])
        cells[r["trace"], limit, int(r["cycle_ns"]) // 1000000][r["policy"]] = loss
    return cells


def mean(losses):
    return math.exp(sum(math.log(1 + x) for x in losses) / len(losses))


def clearly(a, b):
    return a > 1.02 * b and a > b + 0.001


before, now = read(sys.argv[1]), read(sys.argv[2])
plain = [p for p in next(iter(before.values())) if p.startswith("threshold")]
best = {}  # the best threshold of each limit
for limit in sorted({c[1] for c in before}):
    best[limit] = min(plain, key=lambda p: mean([d[p] for c, d in before.items() if c[1] == limit]))
    print(f"at {limit}x the best is {best[limit]}")
lost = {"best of its limit": 0, "best of the cell": 0, "never": 0}
for c, d in sorted(before.items()):
    mine, own = now[c]["pacer"], min(plain, key=d.get)
    rivals = {"best of its limit": d[best[c[1]]], "best of the cell": d[own], "never": d["never"]}
    for name, loss in rivals.items():
        lost[name] += clearly(mine, loss)
    if clearly(mine, d[own]):
        print(f"{c[0]} {c[1]}x {c[2]} ms: {mine:.4f} (before {d['pacer']:.4f}), {own} {d[own]:.4f}")
print(f"{len(before)} cells; pacer loses clearly more than:", ", ".join(f"{k} {v}" for k, v in lost.items()))
for name in sorted({c[0] for c in before}):
    print(f"{name}: J {mean([d['pacer'] for c, d in before.items() if c[0] == name]):.3f} -> {mean([d['pacer'] for c, d in now.items() if c[0] == name]):.3f},"
          f" never {mean([d['never'] for c, d in before.items() if c[0] == name]):.3f}")
print(f"J of pacer {mean([d['pacer'] for d in before.values()]):.4f} -> {mean([d['pacer'] for d in now.values()]):.4f}; of never {mean([d['never'] for d in before.values()]):.4f};"
      f" of the best threshold of each limit {mean([d[best[c[1]]] for c, d in before.items()]):.4f}, of each cell {mean([min(d[p] for p in plain) for d in before.values()]):.4f}")
