"""Live runs of what others do, in turn with pacer, in lanes as run.py's; and mlp again with both rules."""
import json, os, subprocess, threading, time
HERE, OUT = os.path.dirname(os.path.abspath(__file__)), os.environ["OUT"]
END = float(os.environ.get("END", 52))
began = time.time(); now = lambda: time.time() - began
T = "/tmp/rules"; os.makedirs(T, exist_ok=True); os.chdir(T)
subprocess.run(f"xz -dc {HERE}/replay.xz >replay && chmod +x replay", shell=True, check=True)
A, B = "mlp gpt2 gnn".split(), "resnet burst".split()
P = ["never", "cpucontrol", "growth:0.25", "growth:0.5", "growth", "gomemlimit", "cudajl", "pacer"]
LANES = [("gpu", "0-2", A, P, "1s"), ("gpu", "3-5", B, P, "1s"), ("gpu", "6-8", ["mlp"], ["old", "pacer"], "2s"), ("host", "9-10", A, P, "1s"), ("host", "11-12", B, P, "1s"), ("host", "13-14", ["mlp"], ["old", "pacer"], "2s")]
lock = threading.Lock(); failed = []
def lane(where, cores, names, policies, long):
    n = 0
    while now() < END:
        n += 1
        for name in names:
            for p in policies if n % 2 else policies[::-1]:
                if now() > END: return
                args = ["taskset", "-c", cores, "./replay", "live", name, "--policy", p, "--limit", "1.5x", "--for", long, "--format", "json"]
                args += ["--pool", "cuda", "--sleep", "--scale", "4", "--ballast", "16MiB"] if where == "gpu" else ["--scale", "16", "--ballast", "1MiB"]
                try: r = subprocess.run(args, capture_output=True, text=True, timeout=20)
                except subprocess.TimeoutExpired: failed.append([where, name, p, "timeout"]); continue
                with lock:
                    if r.returncode: failed.append([where, name, p, r.stderr[-200:]])
                    for l in r.stdout.splitlines():
                        try: x = json.loads(l)
                        except ValueError: continue
                        open(f"{OUT}/others.jsonl", "a").write(json.dumps(dict(where=where, round=n, long=long, **x)) + "\n")
ts = [threading.Thread(target=lane, args=l) for l in LANES]
for t in ts: t.start()
for t in ts: t.join()
print(f"{now():.0f} s; failed {len(failed)}:", failed[:4])
