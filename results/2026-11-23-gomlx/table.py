"""Prints the table of README.md: python3 table.py first.bench fast.bench slow.bench ..."""
import collections, re, statistics, sys

cells, order = collections.defaultdict(list), []
for name in sys.argv[1:]:
    for line in open(name):
        m = re.match(r"BenchmarkGomlx/program=(\w+)/heap=(\d+)MiB/limit=(\S*)/manner=(\S+) (\d+) (\d+) ns/op", line)
        if not m:
            continue
        group = (name.split(".")[0], m[1], m[3], int(m[2]))
        if group not in order:
            order.append(group)
        n = {unit: int(v) for v, unit in re.findall(r"(\d+) ([a-zA-Z-]+)", line[m.end():])}
        cells[group, m[4]].append((int(m[6]) / 1e6, int(m[5]), n))
for g in order:
    hand = statistics.median(v[0] for v in cells[g, "hand"]) if cells[g, "hand"] else None
    print(*g)
    for (group, manner), runs in cells.items():
        if group != g or not runs:
            continue
        ms = statistics.median(v[0] for v in runs)
        last = runs[-1][2]
        print(f"    {manner:10} {ms:8.2f} ms a step {ms / hand - 1 if hand else 0:+8.1%} of hand, {len(runs)} runs ({', '.join('%.2f' % v[0] for v in runs)}), "
              f"{last.get('gc-cycles')} cycles in {runs[-1][1]} steps, {last.get('exposed-ns', 0) / 1e6:.0f} ms exposed, peak {last.get('peak-buffers')} buffers{', FAILED' if last.get('failed') else ''}")
