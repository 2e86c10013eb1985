"""The cells of README.md: python3 table.py cells.bench tick1s.bench, or first.bench, or slow.bench ..."""
import collections, re, statistics, sys

def read(names):
    """Runs by (program, MiB of heap, limit, manner)."""
    cells = collections.defaultdict(list)
    for name in names:
        for line in open(name):
            m = re.match(r"BenchmarkGomlx/program=(\w+)/heap=(\S+)MiB/limit=(\S*)/manner=(\S+) (\d+) (.*)", line)
            if m:
                n = {unit: int(v) for v, unit in re.findall(r"(\d+) ([a-zA-Z0-9-]+(?:/op)?)", m[6])}
                limit = float(m[3][:-1]) if m[3].endswith("x") else m[3]
                cells[m[1], int(float(m[2])), limit, m[4]].append(n | {"steps": int(m[5])})
    return cells

def main(names):
    cells = read(names)
    ms = {key: statistics.median(r["ns/op"] for r in runs) / 1e6 for key, runs in cells.items()}
    manners = [m for m in ("default", "never", "cudajl", "tick100ms", "tick1s", "default@12", "default@8", "default@4", "default@2", "hand@8", "hand@4") if any(k[3] == m for k in cells)]
    print("| program, heap, limit | by hand | " + " | ".join(manners) + " | cycle ms | by hand: lowest to highest |\n|---|--:|" + "--:|" * (len(manners) + 2))
    for group in dict.fromkeys(k[:3] for k in cells):
        hand = [r["ns/op"] / 1e6 for r in cells[group + ("hand",)]]
        row = [f"{group[0]}, {group[1]} MiB, {group[2]}{'x' if isinstance(group[2], float) else ''}", f"{statistics.median(hand):.2f}" if hand else ""]
        for m in manners:
            at = ms.get(group + (m,))
            row.append("" if at is None else f"{at:.2f}" + (f" ({at / statistics.median(hand) - 1:+.0%})" if hand else ""))
        cycle = [r.get("cycle-ns", 0) / 1e6 for r in cells[group + ("default",)]]
        row += [f"{statistics.median(cycle):.1f}" if cycle else "", f"{min(hand):.2f} to {max(hand):.2f}" if hand else ""]
        print("| " + " | ".join(row) + " |")

if __name__ == "__main__":
    main(sys.argv[1:])
