"""Prints the medians of pool.bench as a table."""
import collections, os, statistics

runs = collections.OrderedDict()
with open(os.path.join(os.path.dirname(__file__), "pool.bench")) as f:
    for line in f:
        w = line.split()
        if line.startswith("Benchmark"):
            for value, unit in zip(w[2::2], w[3::2]):
                if unit in ("ns/op", "cpu-ns/op"):
                    runs.setdefault((w[0].removeprefix("Benchmark"), unit), []).append(float(value))
print("| benchmark | unit | median | least | most |\n|---|---|--:|--:|--:|")
for (name, unit), v in runs.items():
    print(f"| {name} | {unit} | {statistics.median(v):,.1f} | {min(v):,.1f} | {max(v):,.1f} |")
