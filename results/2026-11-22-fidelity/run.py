"""Live runs in lanes, each on cores of its own: three on the GPU with four cores each, and two on the host with two cores each and
sizes divided by 16. First each lane calibrates for one place, in 55 s. Then the lanes of a kind take rounds from one queue, plan.jsonl: a
group is the begin of a recording at one limit in one place, a round its four policies in turn, and a group has three rounds. A run measures
cycles for a second, says what will happen, and then is live.

There were three calls, one after the other on one machine, which kept the calibrations and what was left of the queue.
"""
import json, os, shutil, subprocess, tarfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT, T = os.environ.get("OUT", "/tmp/fid-out"), os.environ.get("T", "/tmp/fid")
END, CAL, POOL, ROUNDS = float(os.environ.get("END", 568)), os.environ.get("CAL", "55s"), os.environ.get("POOL", "cuda"), int(os.environ.get("ROUNDS", 3))
POLICIES = "never cudajl sqrt pacer".split()
BEGAN, LOCK, ROOM = time.time(), threading.Lock(), [float(os.environ.get("ROOM", 128))]
now = lambda: time.time() - BEGAN
CALL = os.environ["CALL"]
os.makedirs(OUT, exist_ok=True); os.makedirs(T, exist_ok=True)
os.chdir(T)
if not os.path.exists("plan.jsonl"):
    subprocess.run(f"xz -dc {HERE}/replay.xz >replay && chmod +x replay && cp {HERE}/*.arrows {HERE}/plan.jsonl .", shell=True, check=True)
subprocess.run("{ nvidia-smi -L; nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv; lscpu | grep -E 'Model name|Thread|^CPU\\(s\\)|L2|L3'; uname -r; "
    f"cat /sys/kernel/mm/transparent_hugepage/enabled; cat {HERE}/COMMIT; uptime; }} >{OUT}/env.txt 2>&1", shell=True)

# cores, what the lane calibrates, and whose machine it takes for the other place of its kind
LANES = [("gpu", "0-3", "16MiB", {"256MiB": 1}), ("gpu", "4-7", "256MiB", {"16MiB": 0}), ("gpu", "8-11", "256MiB", {"16MiB": 0}),
    ("host", "12-13", "1MiB", {"16MiB": 4}), ("host", "14-15", "16MiB", {"1MiB": 3})]
if "DRY" in os.environ: LANES = [("gpu", "0", "16MiB", {"256MiB": 0}), ("host", "1", "1MiB", {"16MiB": 1})]
PLAN = [json.loads(l) for l in open("plan.jsonl")]
FAILED = []

def machine(lane, ballast): return f"m-{LANES[lane][0]}-{ballast}-{LANES[lane][3].get(ballast, lane)}.json"

def run(lane, args, limit, out, err):
    with open(out, "w") as o, open(err, "w") as e:
        try: return subprocess.run(["taskset", "-c", LANES[lane][1], "./replay"] + args, stdout=o, stderr=e, timeout=max(5, limit)).returncode
        except subprocess.TimeoutExpired: return "timeout"

def calibrate(lane):
    where, _, heap, _ = LANES[lane]
    name = machine(lane, heap)[:-5]
    if os.path.exists(name + ".json"): return
    rc = run(lane, ["calibrate", "--heap", heap, "--time", CAL, "--cycles", "cycles" + name[1:] + ".jsonl", "-o", name + ".json"] + (["--pool", POOL] if where == "gpu" else []), 120, "/dev/null", name + ".txt")
    print(f"{now():.0f} s: lane {lane} calibrated: {rc}", open(name + ".txt").read()[-200:] if rc else "", flush=True)

def take(lane):
    where = LANES[lane][0]
    with LOCK:
        for i, g in enumerate(PLAN):
            if g["where"] == where and 1.1 * g["takes"] + 2 < END - now() and (where == "host" or g["gib"] <= ROOM[0]):
                if where == "gpu": ROOM[0] -= g["gib"]
                return PLAN.pop(i)

def work(lane):
    where = LANES[lane][0]
    while g := take(lane):
        began, done = now(), g.get("done", 0)
        while done < ROUNDS and 1.1 * g["takes"] + 2 < END - now():
            done += 1
            for p in POLICIES:
                name = f"cell-{lane}"
                args = ["live", g["trace"] if g["seen"] else g["trace"] + ".arrows", "--policy", p, "--limit", g["limit"], "--ballast", g["ballast"], "--for", g["for"], "--seed", str(done), "--machine", machine(lane, g["ballast"]), "--format", "json"]
                args += ["--pool", POOL, "--sleep"] if where == "gpu" else ["--scale", "16"]
                at = now()
                rc = run(lane, args, min(60, END + 18 - at), name, name + ".err")
                with LOCK:
                    if rc: FAILED.append(dict(g, failed=p, rc=rc, why=open(name + ".err").read()[-200:]))
                    else:
                        with open(f"{OUT}/{where}.jsonl", "a") as f:
                            for l in open(name): f.write(json.dumps(dict(where=where, ballast=g["ballast"], run=str(done), call=CALL, lane=lane, began=round(at), **{"for": g["for"]}, **json.loads(l))) + "\n")
        with LOCK:
            if where == "gpu": ROOM[0] += g["gib"]
            if done < ROUNDS: PLAN.insert(0, dict(g, done=done))
            print(f"{now():.0f} s: lane {lane} {g['ballast']} {g['trace']} {g['limit']} {done}: {now() - began:.0f} s, a round {g['takes']:.0f} planned", flush=True)

for task in (calibrate, work):
    all = [threading.Thread(target=task, args=(i,)) for i in range(len(LANES))]
    for t in all: t.start()
    for t in all: t.join()
with open("plan.jsonl", "w") as f:
    for g in PLAN: f.write(json.dumps(g) + "\n")
shutil.copy("plan.jsonl", OUT)
with tarfile.open(OUT + "/calibrate.tar.gz", "w:gz") as tar:
    for f in sorted(os.listdir(".")):
        if f.startswith(("m-", "cycles-")): tar.add(f)
with open(OUT + "/failed.jsonl", "w") as f:
    for c in FAILED: f.write(json.dumps(c) + "\n")
print(f"{now():.0f} s: left {len(PLAN)} groups, {sum(g['seen'] for g in PLAN)} of them built in; failed {len(FAILED)} runs", FAILED[:5], flush=True)
subprocess.run(f"uptime >>{OUT}/env.txt; wc -l {OUT}/*.jsonl; grep -h 'How sure' m-*.txt", shell=True)
if rest := os.environ.get("REST"): subprocess.run(rest.replace("HERE", HERE) + f" >{OUT}/tests.txt 2>&1", shell=True)
print(f"{now():.0f} s", flush=True)
