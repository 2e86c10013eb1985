"""Prints the medians of a file that run.sh wrote: table.py sites.bench"""
import collections, re, statistics, sys

values, which = collections.defaultdict(list), ""
for line in open(sys.argv[1]):
    if line.startswith("# "):
        which = line[2:].strip()
    m = re.match(r"Benchmark(\S+?)(?:-\d+)?\s+\d+\s+.*?([\d.]+) cpu-ns/op", line)
    if m:
        values[m[1], which].append(float(m[2]))
for (name, which), v in values.items():
    print(f"{name} {which}: {statistics.median(v):.1f} ({min(v):.1f} to {max(v):.1f}) of {len(v)}")
