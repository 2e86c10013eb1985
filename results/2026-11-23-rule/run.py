"""Live runs of two rules in turn: the pacer of 100ab33 ("old") and that of now, in lanes, each on cores of its own: two on the GPU at a quarter of the recorded
sizes with 16 MiB of Go heap, two on the host with sizes divided by 16 and 1 MiB. A round is six recordings, each with both rules, the first of the two by turns."""
import json, os, subprocess, threading, time
HERE, OUT = os.path.dirname(os.path.abspath(__file__)), os.environ["OUT"]
END, FOR = float(os.environ.get("END", 105)), os.environ.get("FOR", "2s")
began = time.time(); now = lambda: time.time() - began
T = "/tmp/rules"; os.makedirs(T, exist_ok=True); os.chdir(T)
subprocess.run(f"for f in replay sim.test; do xz -dc {HERE}/$f.xz >$f && chmod +x $f; done", shell=True, check=True)
subprocess.run(f"{{ nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; lscpu | grep -E 'Model name|^CPU\\(s\\)'; uname -r; }} >{OUT}/env.txt 2>&1", shell=True)
NAMES = os.environ.get("NAMES", "mlp resnet gpt2 gnn burst spectral").split()
LANES = json.loads(os.environ.get("LANES", '[["gpu","0-3","1.5x"],["gpu","4-7","2x"],["host","8-9","1.5x"],["host","10-11","2x"]]'))
lock = threading.Lock(); failed = []
def lane(where, cores, limit):
    n = 0
    while now() < END:
        n += 1
        for name in NAMES:
            for p in (["old", "pacer"] if n % 2 else ["pacer", "old"]):
                if now() > END: return
                args = ["taskset", "-c", cores, "./replay", "live", name, "--policy", p, "--limit", limit, "--for", FOR, "--format", "json"]
                args += ["--pool", "cuda", "--sleep", "--scale", "4", "--ballast", "16MiB"] if where == "gpu" else ["--scale", "16", "--ballast", "1MiB"]
                try: r = subprocess.run(args, capture_output=True, text=True, timeout=40)
                except subprocess.TimeoutExpired: failed.append([where, name, p, limit, "timeout"]); continue
                with lock:
                    if r.returncode: failed.append([where, name, p, limit, r.stderr[-200:]])
                    for l in r.stdout.splitlines():
                        try: x = json.loads(l)
                        except ValueError: continue
                        open(f"{OUT}/live.jsonl", "a").write(json.dumps(dict(where=where, round=n, **x)) + "\n")
def bench():
    for _ in range(10):
        if now() > END: return
        r = subprocess.run(["taskset", "-c", "15", "./sim.test", "-test.run", "xxx", "-test.bench", "Rule", "-test.benchtime", "1x"], capture_output=True, text=True)
        open(f"{OUT}/decision.bench", "a").write(r.stdout)
ts = [threading.Thread(target=lane, args=l) for l in LANES] + ([threading.Thread(target=bench)] if not os.environ.get("NOBENCH") else [])
for t in ts: t.start()
for t in ts: t.join()
print(f"{now():.0f} s; failed {len(failed)}:", failed[:4])
subprocess.run(f"wc -l {OUT}/*; grep Bench {OUT}/decision.bench | sort | head -20", shell=True)
