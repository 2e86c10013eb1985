#!/usr/bin/env python3
"""Runs six clients at once in one control group of memory, in each way, and writes live.csv.

    live.py [-rounds N] [-limit MIB]

It needs cgroup v1 or v2 with a memory controller below the group of this process, and root."""
import argparse, csv, json, os, pathlib, statistics, subprocess, sys, tempfile, threading, time

arguments = argparse.ArgumentParser()
arguments.add_argument("-rounds", type=int, default=3)
arguments.add_argument("-limit", type=int, default=1024, help="MiB")
options = arguments.parse_args()
here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
programs = [("query", 80, 1), ("query", 80, 1), ("pack", 80, 1), ("pack", 80, 1), ("arrow", 150, 1), ("lru", 2000, 1)]
ways = ["plain", "memlimit:%d" % (options.limit // len(programs)), "tick:100ms", "tick:1s", "auto", "close"]


def group():
    """Returns the folder of a new group, and the names of its limit and its usage."""
    for line in open("/proc/self/cgroup"):
        _, kind, path = line.strip().split(":", 2)
        if kind == "memory":
            return pathlib.Path("/sys/fs/cgroup/memory" + path) / ("eagergc-%d" % os.getpid()), "memory.limit_in_bytes", "memory.usage_in_bytes"
    return pathlib.Path("/sys/fs/cgroup" + path) / ("eagergc-%d" % os.getpid()), "memory.max", "memory.current"


def watch(file, seen, stop):
    while not stop.wait(0.02):
        seen.append(int(file.read_text()) / 2**20)


def run(binaries, way):
    folder, limit, usage = group()
    folder.mkdir()
    (folder / limit).write_text(str(options.limit << 20))
    running, seen, stop = [], [], threading.Event()
    try:
        for name, requests, workers in programs:
            environment = dict(os.environ) if way == "auto" else dict(os.environ, EAGERGC="off")
            command = 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"'
            running.append(subprocess.Popen(
                ["sh", "-c", command, "sh", folder, binaries / name, "-way", way, "-requests", str(requests), "-workers", str(workers)],
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        watcher = threading.Thread(target=watch, args=(folder / usage, seen, stop))
        watcher.start()
        reports = []
        for process in running:
            out = process.communicate()[0].splitlines()
            if process.returncode == 0:
                reports.append(json.loads(out[-1]))
        stop.set()
        watcher.join()
    finally:
        for process in running:
            process.kill()
            process.wait()
        time.sleep(0.1)
        folder.rmdir()
    sums = {key: sum(r[key] for r in reports) for key in ("cpu_s", "gc_cpu_s", "cycles")}
    return dict(way=way, killed=len(programs) - len(reports), mean_mib=round(statistics.mean(seen)), peak_mib=round(max(seen)),
                cpu_s=round(sums["cpu_s"], 2), gc_cpu_s=round(sums["gc_cpu_s"], 3), cycles=int(sums["cycles"]))


with tempfile.TemporaryDirectory() as folder:
    binaries = pathlib.Path(folder)
    for name in sorted({name for name, _, _ in programs}):
        subprocess.run([root / ".ci/with", "cmd/clients", "go", "build", "-o", binaries / name, "./" + name], check=True)
    rows = []
    for number in range(options.rounds):
        for way in ways:
            rows.append(dict(round=number, **run(binaries, way)))
            print(rows[-1], file=sys.stderr)
            with open(here / "live.csv", "w", newline="") as file:
                out = csv.DictWriter(file, rows[0], lineterminator="\n")
                out.writeheader()
                out.writerows(rows)
    print("| way | killed | mean MiB | peak MiB | processor s | collector s | cycles |\n|---|--:|--:|--:|--:|--:|--:|")
    for way in ways:
        of = [r for r in rows if r["way"] == way]
        middle = lambda key: statistics.median(r[key] for r in of)
        print("| `%s` | %g | %.0f | %.0f | %.2f | %.3f | %.0f |" % (way, middle("killed"), middle("mean_mib"), middle("peak_mib"), middle("cpu_s"), middle("gc_cpu_s"), middle("cycles")))
