"""Live runs with many invocations: python3 longer.py host|gpu, with replay.xz beside it (built with the tag cuda), in lanes that each have two cores of
their own. There were two calls. host: two lanes, five programs that nothing was tuned on, again and again, sizes divided by 16, 1 MiB of Go heap; each lane
calibrates first, and says before each run what will happen. (Four lanes for the GPU were to run beside them, and ended at once: built without the tag.)
gpu: eight lanes, two for each recording: the first 3 s, two policies in each round and two more in each third one, sizes divided by 8, 16 MiB."""
import json, os, subprocess, sys, threading, time
HERE, OUT = os.path.dirname(os.path.abspath(__file__)), os.environ["OUT"]
END, POOL = float(os.environ.get("END", 222)), os.environ.get("POOL", "cuda")
began = time.time(); now = lambda: time.time() - began
T = "/tmp/longer"; os.makedirs(T, exist_ok=True); os.chdir(T)
subprocess.run(f"xz -dc {HERE}/replay.xz >replay && chmod +x replay && cp {HERE}/machine-gpu-16MiB.json .", shell=True, check=True)
subprocess.run(f"{{ nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; lscpu | grep -E 'Model name|^CPU\\(s\\)'; uname -r; uptime; }} >{OUT}/longer-env.txt 2>&1", shell=True)
GPU, HOST = ["gpt2", "gnn", "resnet", "burst"], [f"{s}:36" for s in os.environ.get("SHAPES", "training server decoder solver search").split()]
POLICIES = ["pacer", "growth:0.25", "cudajl", "never"]
lock = threading.Lock(); failed = []
def run(cores, name, policy, limit, more, **tags):
    if now() > END or len(failed) > 5: return
    args = ["taskset", "-c", cores, "./replay", "live", name, "--policy", policy, "--limit", limit, "--format", "json"] + more
    try: r = subprocess.run(args, capture_output=True, text=True, timeout=40)
    except subprocess.TimeoutExpired: return failed.append([name, policy, limit, "timeout"])
    with lock:
        if r.returncode: failed.append([name, policy, limit, r.stderr[-200:]])
        for l in r.stdout.splitlines():
            open(f"{OUT}/longer.jsonl", "a").write(json.dumps(dict(tags, **json.loads(l))) + "\n")
def gpu(cores, name, lane):
    for n in range(1, 100):
        for p in (POLICIES if n % 3 == 1 else POLICIES[:2])[::1 if (n + lane) % 2 else -1]:
            if now() > END or len(failed) > 5: return
            run(cores, name, p, "1.5x", ["--for", "3s", "--pool", POOL, "--scale", "8", "--ballast", "16MiB", "--machine", "machine-gpu-16MiB.json", "--measure", "0", "--seed", str(2 * n + lane)] + (["--sleep"] if POOL == "cuda" else []),
                where="gpu", ballast="16MiB", run=str(2 * n + lane), **{"for": "3s"})
def host(cores, limit):
    m = f"host-{limit}.json"
    subprocess.run(["taskset", "-c", cores, "./replay", "calibrate", "--heap", "1MiB", "--time", os.environ.get("CAL", "40s"), "-o", m], capture_output=True, timeout=120)
    subprocess.run(["cp", m, OUT])
    n = 0
    while now() < END:
        n += 1
        for name in HOST:
            for p in ["never", "cudajl", "pacer"] if n % 2 else ["pacer", "cudajl", "never"]:
                run(cores, name, p, limit, ["--for", "2s", "--scale", "16", "--ballast", "1MiB", "--machine", m, "--measure", "300ms", "--seed", str(n)], where="host", ballast="1MiB", run=str(n), **{"for": "2s"})
if sys.argv[1] == "host": lanes = [(host, "12-13", "1.5x"), (host, "14-15", "2x")]
else: lanes = [(gpu, f"{2 * i}-{2 * i + 1}", name, i // 4) for i, name in enumerate(GPU + GPU)]
if "DRY" in os.environ: lanes = lanes[:2]
all = [threading.Thread(target=l[0], args=l[1:]) for l in lanes]
for t in all: t.start()
for t in all: t.join()
print(f"{now():.0f} s; failed {len(failed)}:", failed[:4])
subprocess.run(f"uptime >>{OUT}/longer-env.txt; wc -l {OUT}/*", shell=True)
