"""Ranks policies on recordings of live runs of burst with a cycle at every nth wait (live.json), against burst itself: python3 live.py > live.txt"""
import json, math, sys
sys.path.insert(0, "../2026-11-23-heaptrack")
sys.stdout, out = open("/dev/null", "w"), sys.stdout  # ranks.py prints its own tables
from ranks import lost, spearman
sys.stdout = out

rows = [json.loads(line) for line in open("live.json")]
names = list(dict.fromkeys(r["trace"] for r in rows))
causal = [r for r in rows if not r["policy"].startswith("optimum")]
of = lambda name, policy: [r for r in causal if r["trace"] == name and r["policy"] == policy]
j = lambda r: r["exposed_pause_ns"] + 0.05 * r["gc_busy_ns"] + 1e6
print("recording   peak, GiB   Spearman at 1 ms, 10 ms   against its second run   rank of pacer   J of all, of pacer (true deaths = 1)")
for name in names:
    peak = next(r["limit_bytes"] / r["limit_factor"] for r in rows if r["trace"] == name) / 2**30
    again = name[:-1] + ("b" if name.endswith("a") else "a")
    marks = [spearman(lost(causal, c, [name]), lost(causal, c, ["burst"])) for c in (1_000_000, 10_000_000)]
    twice = [spearman(lost(causal, c, [name]), lost(causal, c, [again if again in names else name])) for c in (1_000_000, 10_000_000)]
    ranks = [sorted(v, key=v.get).index("pacer") + 1 for v in (lost(causal, c, [name]) for c in (1_000_000, 10_000_000))]
    ratio = lambda some: math.exp(sum(math.log(j(a) / j(b)) for p in some for a, b in zip(of(name, p), of("burst", p))) / sum(len(of(name, p)) for p in some))
    print("%-10s %8.2f %14.2f %6.2f %18.2f %6.2f %12d, %d %16.3f %.3f" % (name, peak, *marks, *twice, *ranks, ratio(dict.fromkeys(r["policy"] for r in causal)), ratio(["pacer"])))
