"""Live runs in lanes, each on cores of its own: one with 16 MiB and one with 256 MiB on the GPU, four cores each, and three on the
host, two cores each, with sizes divided by 16. Each lane calibrates itself. Then it takes groups from plan.jsonl: the begin of a
recording at one limit, under four policies in turn, three times. A run measures cycles for a second, says what will happen, and
then is live.

This is the second call. In the first, the last lane took 1 MiB before 16 MiB, and rest.sh ran cuda.test; in the second, dense.
"""
import json, os, subprocess, tarfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT, T = os.environ.get("OUT", "/tmp/fid-out"), os.environ.get("T", "/tmp/fid")
END, LAST = float(os.environ.get("END", 470)), float(os.environ.get("LAST", 560))
CAL, POOL, FROM = os.environ.get("CAL", "26s"), os.environ.get("POOL", "cuda"), int(os.environ.get("FROM", 0))
POLICIES = "never cudajl sqrt pacer".split()
BEGAN, LOCK, ROOM = time.time(), threading.Lock(), [float(os.environ.get("ROOM", 128))]
now = lambda: time.time() - BEGAN
os.makedirs(OUT, exist_ok=True); os.makedirs(T, exist_ok=True)
subprocess.run(f"for f in {HERE}/*.xz; do xz -dc $f >{T}/$(basename $f .xz) && chmod +x {T}/$(basename $f .xz); done; cp {HERE}/*.arrows {T}", shell=True, check=True)
os.chdir(T)
subprocess.run("{ nvidia-smi -L; nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv; lscpu | grep -E 'Model name|Thread|^CPU\\(s\\)|L2|L3'; uname -r; "
    f"cat /sys/kernel/mm/transparent_hugepage/enabled; cat {HERE}/COMMIT; uptime; }} >{OUT}/env.txt 2>&1", shell=True)

LANES = [("gpu", "0-3", ["16MiB"]), ("gpu", "4-7", ["256MiB"]), ("host", "8-9", ["1MiB"]), ("host", "10-11", ["16MiB"]), ("host", "12-13", ["16MiB"])]
if "DRY" in os.environ: LANES = [("gpu", "0", ["16MiB"]), ("host", "1", ["1MiB", "16MiB"])]
PLAN = [json.loads(l) for l in open(HERE + "/plan.jsonl")]
LEFT = []

def run(lane, args, limit, out, err):
    with open(out, "w") as o, open(err, "w") as e:
        try: return subprocess.run(["taskset", "-c", LANES[lane][1], "./replay"] + args, stdout=o, stderr=e, timeout=max(5, limit)).returncode
        except subprocess.TimeoutExpired: return "timeout"

def take(lane):
    where, _, heaps = LANES[lane]
    with LOCK:
        for i, g in enumerate(PLAN):
            if g["where"] == where and g["ballast"] in heaps and g["takes"] < END - now() and (where == "host" or g["gib"] <= ROOM[0]):
                if where == "gpu": ROOM[0] -= g["gib"]
                return PLAN.pop(i)

def work(lane):
    where, _, heaps = LANES[lane]
    for h in heaps:
        rc = run(lane, ["calibrate", "--heap", h, "--time", CAL, "--cycles", f"cycles-{where}-{h}-{lane}.jsonl", "-o", f"m-{where}-{h}-{lane}.json"] + (["--pool", POOL] if where == "gpu" else []), 90, "/dev/null", f"m-{where}-{h}-{lane}.txt")
        if rc: print("FAILED calibrate", lane, h, rc, open(f"m-{where}-{h}-{lane}.txt").read()[-200:], flush=True); return
    print(f"{now():.0f} s: lane {lane} is calibrated", flush=True)
    while g := take(lane):
        began = now()
        for r in "123":
            for p in POLICIES:
                name = f"cell-{lane}"
                args = ["live", g["trace"] if g["seen"] else g["trace"] + ".arrows", "--policy", p, "--limit", g["limit"], "--ballast", g["ballast"], "--for", g["for"], "--seed", r, "--machine", f"m-{where}-{g['ballast']}-{lane}.json", "--format", "json"]
                args += ["--pool", POOL, "--sleep"] if where == "gpu" else ["--scale", "16"]
                at = now()
                rc = run(lane, args, min(60, END + 20 - at), name, name + ".err")
                with LOCK:
                    if rc: LEFT.append(dict(g, failed=p, rc=rc, why=open(name + ".err").read()[-200:]))
                    else:
                        with open(f"{OUT}/{where}.jsonl", "a") as f:
                            for l in open(name): f.write(json.dumps(dict(where=where, ballast=g["ballast"], run=r, lane=lane, began=round(at), **{"for": g["for"]}, **json.loads(l))) + "\n")
        with LOCK:
            if where == "gpu": ROOM[0] += g["gib"]
            print(f"{now():.0f} s: lane {lane} {g['ballast']} {g['trace']} {g['limit']}: {now() - began:.0f} s, {g['takes']:.0f} planned", flush=True)

all = [threading.Thread(target=work, args=(i,)) for i in range(len(LANES))]
for t in all: t.start()
for t in all: t.join()
with tarfile.open(OUT + "/calibrate.tar.gz", "w:gz") as tar:
    for f in sorted(os.listdir(".")):
        if f.startswith(("m-", "cycles-")): tar.add(f)
print(f"{now():.0f} s: left out {len(PLAN)} groups, failed {len(LEFT)}", LEFT[:5], flush=True)
with open(OUT + "/left.jsonl", "w") as f:
    for c in LEFT + PLAN: f.write(json.dumps(c) + "\n")
subprocess.run(f"timeout {max(5, LAST - now()):.0f} sh {HERE}/rest.sh >{OUT}/tests.txt 2>&1; uptime >>{OUT}/env.txt; wc -l {OUT}/*.jsonl; grep -E '^ *--- |^(ok|FAIL|PASS|panic)' {OUT}/tests.txt | head -40; grep -h 'How sure' m-*.txt", shell=True)
print(f"{now():.0f} s", flush=True)
