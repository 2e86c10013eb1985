"""Simulated against live, by place and recording: python3 residuals.py writes residuals.txt and residuals.svg from live.jsonl.gz and longer.jsonl.gz.

A residual is simulated over live, the geometric mean over a recording's cells (a limit and a policy), 1 ms added to both sides of a pause. In a cell the mean of
all runs counts. Its interval has 95 of 100 draws of the runs with replacement, in each cell and on both sides. What three runs can say is little: so two
live runs of a cell are held against each other in the same way.
"""
import itertools, math, random, statistics, table
from table import CRITERIA

VALUES = {"exposed": ("exposed_pause_ns", 1e6), "cycles": ("cycles", 0), "peak": ("peak_live_bytes", 0), "elapsed": ("elapsed_ns", 0)}
PLACES = {("gpu", "16MiB"): "#1b6ca8", ("gpu", "256MiB"): "#7fb2d9", ("host", "1MiB"): "#b5482a", ("host", "16MiB"): "#e0a080", ("host, again", "1MiB"): "#3a7d44"}
DRAWS = 400
random.seed(1)


def mean(runs, value):
    name, little = VALUES[value]
    return statistics.fmean(r[name] for r in runs) + little


def residual(cells, value):
    """The geometric mean over pairs of lists of runs, second over first."""
    logs = [math.log(mean(b, value) / mean(a, value)) for a, b in cells if mean(a, value) > 0 < mean(b, value)]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def interval(cells, value):
    drawn = sorted(residual([(random.choices(a, k=len(a)), random.choices(b, k=len(b))) for a, b in cells], value) for _ in range(DRAWS))
    return drawn[DRAWS // 40], drawn[-1 - DRAWS // 40]


def load():
    """Returns the pairs (live, simulated) of runs by cell."""
    cells = {}
    for file in ("live.jsonl.gz", "longer.jsonl.gz"):
        runs = table.load(file)
        for k, live in runs["live"].items():
            if len(live) >= 3 and k in runs["sim"]:
                cells[k] = list(live.values()), list(runs["sim"][k].values())
    return cells


def groups(cells):
    by = lambda k: (k[0], k[1], k[2])
    return {g: [cells[k] for k in ks] for g, ks in itertools.groupby(sorted(cells), key=by)}


def agreement(pairs):
    """The share of the pairs of results that agree, for each criterion, in percent."""
    return [100 * statistics.fmean(ok(a, b) for a, b in pairs) for ok in CRITERIA.values()]


def medians(cell): return [table.median(dict(enumerate(runs))) for runs in cell]


def write(cells, out):
    say = lambda *words: print(*words, file=out)
    say("Simulated / live; * never used for a model; 95 % of draws of the runs in brackets\n")
    say(f"{'place':26} {'recording':14} {'cells':>5}" + "".join(f"{v:>24}" for v in VALUES))
    for (where, ballast, name), some in groups(cells).items():
        held = "" if name in table.BUILT_IN and "again" not in where else "*"
        say(f"{where + ' ' + ballast:26} {name + held:14} {len(some):5}" + "".join("%10.3f (%.3f-%.3f)" % (residual(some, v), *interval(some, v)) for v in VALUES))
    say("\nExposed pause = cycles x length of a cycle x share that is exposed: simulated / live of each, and how far a cell is from it, as a factor\n")
    factors = {"cycles": lambda r: r["cycles"], "length": lambda r: r["gc_busy_ns"] / r["cycles"], "share": lambda r: r["exposed_pause_ns"] / r["gc_busy_ns"]}
    for place in dict.fromkeys(k[:2] for k in sorted(cells)):
        for policy in dict.fromkeys(k[4] for k in sorted(cells) if k[:2] == place):
            line = []
            pairs = [medians(cells[k]) for k in cells if k[:2] == place and k[4] == policy]
            pairs = [p for p in pairs if all(r["cycles"] and r["exposed_pause_ns"] > 5e6 for r in p)]
            for of in factors.values():
                logs = [math.log(of(s) / of(l)) for l, s in pairs]
                line.append("%6.3f (x %.2f)" % (math.exp(statistics.fmean(logs)), math.exp(statistics.pstdev(logs))) if logs else "-")
            say(f"{' '.join(place):26} {policy:12} {len(pairs):4} cells  " + "   ".join(f"{f} {x}" for f, x in zip(factors, line)))
    say("\nPeaks that differ by more than 2 %: does one of the live runs have the peak of the simulation?\n")
    wrong = [k for k in sorted(cells) if not CRITERIA["peak"](*medians(cells[k]))]
    seen = [k for k in wrong if any(abs(medians(cells[k])[1]["peak_live_bytes"] / r["peak_live_bytes"] - 1) < .005 for r in cells[k][0])]
    count = [k for k in wrong if k not in seen and (lambda l, s: l["cycles"] != s["cycles"])(*medians(cells[k]))]
    say(f"{len(wrong)} of {len(cells)} cells: one has it in {len(seen)}, within 0.5 %; of the others the number of cycles differs in {len(count)}; {len(wrong) - len(seen) - len(count)} are left")
    for k in wrong: say(" ", *k, "live", *["%.0f" % (r["peak_live_bytes"] / 2**20) for r in cells[k][0]], "MiB, simulated", *["%.0f" % (r["peak_live_bytes"] / 2**20) for r in cells[k][1]], "" if k not in seen else "seen live")
    say("\nAgreement, %:" + " " * 54 + "".join(f"{c:>9}" for c in CRITERIA), "   order of exposed pauses")
    for place in dict.fromkeys(k[:2] for k in sorted(cells)):
        keys = [k for k in cells if k[:2] == place]
        some = [cells[k] for k in keys]
        live, sim = ({k: medians(cells[k])[i] for k in keys} for i in (0, 1))
        once = [{k: cells[k][0][i] for k in keys} for i in (0, 1)]
        orders = [table.order(live, sim, keys), "", table.order(*once, keys)]
        twice = [p for live, _ in some for p in itertools.combinations(live, 2)]
        for (name, pairs), order in zip((("the medians of the runs", map(medians, some)), ("a live run and its simulation", [p for live, sim in some for p in zip(live, sim)]), ("two live runs", twice)), orders):
            pairs = list(pairs)
            say(f"{' '.join(place):26} {name:30} {len(pairs):5} pairs" + "".join(f"{x:9.1f}" for x in agreement(pairs)), order)
    say("\nJ (exposed pause + 0.05 x collector time) of a policy / that of pacer, live and simulated (by the H200's machine), runs of each, 95 % of draws\n")
    VALUES["j"] = "j", 1e6
    again = {k: cells[k] for k in sorted(cells) if "H200" in k[0]}
    for r in (r for sides in again.values() for runs in sides for r in runs): r["j"] = r["exposed_pause_ns"] + .05 * r["gc_busy_ns"]
    for policy in ("growth:0.25", "cudajl", "never"):
        for name in [*dict.fromkeys(k[2] for k in again), "all four"]:
            pairs = [[(again[k[:4] + ("pacer",)][i], again[k][i]) for k in again if k[4] == policy and name in (k[2], "all four")] for i in (0, 1)]
            say(f"{policy:12} {name:9} {min(len(b) for _, b in pairs[0])} and {min(len(a) for a, _ in pairs[0])} runs" + "".join("   %s %.2f (%.2f-%.2f)" % (kind, residual(p, "j"), *interval(p, "j")) for kind, p in zip(("live", "simulated"), pairs)))


def draw(cells):
    names = sorted({k[2] for k in cells}, key=lambda n: (n not in table.BUILT_IN, n))
    x = lambda r: 420 + 300 * math.log2(min(2, max(.5, r)))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{80 + 26 * len(names)}" font-family="sans-serif" font-size="12" role="img" aria-label="Exposed pause, simulated over live, by recording and place">'
        '<rect width="100%" height="100%" fill="white"/><text x="10" y="18" font-size="14">Exposed pause, simulated / live, 95 % of draws; * never used for a model</text>']
    for i, (place, colour) in enumerate(PLACES.items()):
        out.append(f'<circle cx="{20 + 140 * i}" cy="36" r="4" fill="{colour}"/><text x="{28 + 140 * i}" y="40">{" ".join(place)}</text>')
    bottom = 62 + 26 * len(names)
    for r in (.5, .75, .9, 1, 1.1, 1.33, 2):
        out.append(f'<path d="M{x(r):.1f} 50V{bottom}" stroke="#{"555" if r == 1 else "ddd"}"/><text x="{x(r):.1f}" y="{bottom + 14}" text-anchor="middle">{r:g}</text>')
    found = groups(cells)
    for row, name in enumerate(names):
        y = 58 + 26 * row
        out.append(f'<text x="10" y="{y + 12}">{name}{"" if name in table.BUILT_IN else "*"}</text>')
        for i, (place, colour) in enumerate(PLACES.items()):
            if some := found.get((*place, name)):
                low, high = interval(some, "exposed")
                out.append(f'<path d="M{x(low):.1f} {y + 4 * i}H{x(high):.1f}" stroke="{colour}" stroke-width="2"/><circle cx="{x(residual(some, "exposed")):.1f}" cy="{y + 4 * i}" r="3" fill="{colour}"/>')
    return "\n".join(out + ["</svg>\n"])


if __name__ == "__main__":
    cells = load()
    with open("residuals.txt", "w") as out: write(cells, out)
    with open("residuals.svg", "w") as out: out.write(draw({k: c for k, c in cells.items() if k[:2] in PLACES}))
