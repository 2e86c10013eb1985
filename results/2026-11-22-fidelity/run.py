"""Live runs on two GPUs and on the host, in lanes that take the next cell of plan.jsonl; before that each lane calibrates.

Six lanes of four cores replay on the GPUs, three on each, and sleep where they wait; four lanes of two cores replay on the host
with sizes divided by 16. A cell is simulated with the machine that its own lane has calibrated, by the binary that runs it.
"""
import json, os, subprocess, sys, tarfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT, T = os.environ.get("OUT", "/tmp/fid-out"), os.environ.get("T", "/tmp/fid")
END, LAST = float(os.environ.get("END", 440)), float(os.environ.get("LAST", 535))
CAL, POOL = os.environ.get("CAL", "26s"), os.environ.get("POOL", "cuda")
DRY = "DRY" in os.environ  # fewer lanes, on the host
BEGAN, LOCK, ROOM = time.time(), threading.Lock(), {0: 120.0, 1: 120.0}
now = lambda: time.time() - BEGAN
os.makedirs(OUT, exist_ok=True); os.makedirs(T + "/cells", exist_ok=True)
subprocess.run(f"for f in replay dense cuda.test; do gzip -dc {HERE}/$f.gz >{T}/$f && chmod +x {T}/$f; done; cp {HERE}/*.arrows {T}", shell=True, check=True)
os.chdir(T)
subprocess.run("{ nvidia-smi -L; nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv; lscpu | grep -E 'Model name|Thread|^CPU\\(s\\)|L2|L3'; uname -r; "
    f"cat /sys/kernel/mm/transparent_hugepage/enabled; cat {HERE}/COMMIT; uptime; }} >{OUT}/env.txt 2>&1", shell=True)

LANES = [("gpu", f"{4*i}-{4*i+3}", i % 2, ("16MiB", "256MiB")) for i in range(6)] + [("host", f"{24+2*i}-{25+2*i}", 0, ("1MiB", "16MiB")) for i in range(4)]
if DRY: LANES = [("gpu", "0", 0, ("1MiB", "2MiB")), ("host", "1", 0, ("1MiB", "2MiB"))]
PLAN = [json.loads(l) for l in open(HERE + "/plan.jsonl")]
if DRY:
    for c in PLAN: c["ballast"] = {"16MiB": "1MiB", "256MiB": "2MiB", "1MiB": "1MiB"}[c["ballast"]]

def run(lane, args, limit, out, err):
    where, cores, gpu, _ = LANES[lane]
    env = dict(os.environ, CUDA_VISIBLE_DEVICES=str(gpu))
    with open(out, "w") as o, open(err, "w") as e:
        try: return subprocess.run(["taskset", "-c", cores, "./replay"] + args, stdout=o, stderr=e, env=env, timeout=max(5, limit)).returncode
        except subprocess.TimeoutExpired: return "timeout"

def calibrate(lane):
    where, _, _, heaps = LANES[lane]
    for h in heaps:
        pool = ["--pool", POOL] if where == "gpu" else []
        rc = run(lane, ["calibrate", "--heap", h, "--time", CAL, "--cycles", f"cycles-{where}-{h}-{lane}.jsonl", "-o", f"m-{where}-{h}-{lane}.json"] + pool, 60, "/dev/null", f"m-{where}-{h}-{lane}.txt")
        if rc: print("FAILED calibrate", lane, h, rc, open(f"m-{where}-{h}-{lane}.txt").read()[-200:])

def take(lane):
    where, _, gpu, _ = LANES[lane]
    with LOCK:
        for i, c in enumerate(PLAN):
            if c["where"] == where and c["est"] * 1.15 + 3 < END - now() and c["gib"] <= ROOM[gpu]:
                ROOM[gpu] -= c["gib"]
                return PLAN.pop(i)

LEFT = []
def work(lane):
    where, _, gpu, _ = LANES[lane]
    while c := take(lane):
        name = f"cells/{where}-{c['ballast']}-{c['trace']}-{c['limit']}-{c['policy']}-{c['run']}-{lane}"
        args = ["live", c["trace"] + ".arrows", "--policy", c["policy"], "--limit", c["limit"], "--ballast", c["ballast"], "--machine", f"m-{where}-{c['ballast']}-{lane}.json", "--format", "json"]
        args += ["--pool", POOL, "--sleep"] if where == "gpu" else ["--scale", "16"]
        if DRY: args += ["--scale", "64", "--speed", "8"] if where == "gpu" else ["--speed", "8"]
        began = now()
        rc = run(lane, args + c.get("flags", []), min(120, END + 15 - began), name, name + ".err")
        with LOCK: ROOM[gpu] += c["gib"]
        with LOCK:
            if rc: LEFT.append(dict(failed=name, rc=rc, why=open(name + ".err").read()[-200:]))
            else:
                with open(f"{OUT}/{where}.jsonl", "a") as f:
                    for l in open(name): f.write(json.dumps(dict(where=where, ballast=c["ballast"], run=c["run"], lane=lane, began=round(began), **json.loads(l))) + "\n")

def lanes(f):
    all = [threading.Thread(target=f, args=(i,)) for i in range(len(LANES))]
    for t in all: t.start()
    for t in all: t.join()

lanes(calibrate)
print(f"{now():.0f} s: calibrated", flush=True)
with tarfile.open(OUT + "/calibrate.tar.gz", "w:gz") as tar:
    for f in sorted(os.listdir(".")):
        if f.startswith(("m-", "cycles-")): tar.add(f)
lanes(work)
print(f"{now():.0f} s: live runs are done; left out {len(PLAN)}, failed {len(LEFT)}", LEFT[:5], flush=True)
with open(OUT + "/left.jsonl", "w") as f:
    for c in LEFT + PLAN: f.write(json.dumps(c) + "\n")

def rest(cmd, out):
    subprocess.run(f"timeout {max(5, LAST - now() - 3):.0f} {cmd}", shell=True, stdout=open(f"{OUT}/{out}", "w"), stderr=subprocess.STDOUT)
    print(f"{now():.0f} s: {out}", flush=True)
dense = "taskset -c 8-31 ./dense --pool cuda --device 1 --check 0 --runs 1"
jobs = [threading.Thread(target=rest, args=a) for a in (
    (f"sh -c 'mkdir -p /tmp/el; CUDA_VISIBLE_DEVICES=0 timeout 50 taskset -c 0-7 python3 {HERE}/elastic.py /tmp/el; tar czf {OUT}/elastic.tar.gz -C /tmp/el .; timeout 60 taskset -c 0-7 ./cuda.test -test.v -test.short -test.timeout 55s'", "tests.txt"),
    ("sh -c 'for i in 1 2 3; do for p in never pacer; do " + dense + " --limit 4GiB --ballast 1GiB --policy $p; done; done; for i in 1 2; do for p in never pacer; do " + dense + " --limit 8GiB --ballast 256MiB --policy $p; done; done'", "dense.bench"))]
for t in jobs: t.start()
for t in jobs: t.join()
subprocess.run("uptime", stdout=open(OUT + "/env.txt", "a"))
subprocess.run(f"wc -l {OUT}/*.jsonl; grep -cE '^--- PASS' {OUT}/tests.txt; grep -E '^--- (FAIL|SKIP)|^(ok|FAIL|PASS|panic)' {OUT}/tests.txt | head; grep -h GiB {OUT}/dense.bench | cut -c1-120 | tail -30; ls -la {OUT}; grep -h 'How sure' m-*.txt", shell=True)
