import sys, os, time, json, gzip, lzma, pickle, random, math, torch
import torch.nn as nn, torch.nn.functional as F
name, out, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
torch.manual_seed(7); random.seed(7)
dev = "cuda"; torch.set_default_device(dev)
torch.backends.cuda.matmul.allow_tf32 = True; torch.backends.cudnn.allow_tf32 = True
torch.cuda.init(); torch.zeros(1, device=dev); torch.cuda.synchronize()
start = [0.0]
def left(): return time.time() - start[0] < seconds
R = lambda *s, **k: torch.randn(*s, device=dev, **k)

class Block(nn.Module):
    def __init__(s, d, h):
        super().__init__(); s.h = h; s.n1 = nn.LayerNorm(d); s.n2 = nn.LayerNorm(d); s.qkv = nn.Linear(d, 3*d); s.o = nn.Linear(d, d)
        s.up = nn.Linear(d, 4*d); s.down = nn.Linear(4*d, d)
    def forward(s, x, past=None):
        b, t, d = x.shape
        q, k, v = s.qkv(s.n1(x)).view(b, t, 3, s.h, d//s.h).permute(2, 0, 3, 1, 4)
        if past is not None: k = torch.cat([past[0], k], 2); v = torch.cat([past[1], v], 2)
        x = x + s.o(F.scaled_dot_product_attention(q, k, v, is_causal=past is None).transpose(1, 2).reshape(b, t, d))
        return x + s.down(F.gelu(s.up(s.n2(x)))), (k, v)

def decode():  # text generation: a growing cache of keys and values, copied at each token, batches of random prompts and lengths
    L = [Block(2048, 16).to(dev).half().eval() for _ in range(16)]; head = nn.Linear(2048, 32000).to(dev).half(); emb = nn.Embedding(32000, 2048).to(dev).half()
    with torch.no_grad():
        while left():
            b, t = random.choice([4, 8, 16, 32, 64]), random.randint(64, 1024)
            x = emb(torch.randint(0, 32000, (b, t), device=dev)); past = []
            for l in L: x, kv = l(x); past.append(kv)
            for _ in range(random.randint(20, 120)):
                tok = torch.multinomial(torch.softmax(head(x[:, -1]).float(), -1), 1); 
                if tok.min().item() == -1 or not left(): break
                x = emb(tok)
                for i, l in enumerate(L): x, past[i] = l(x, past[i])

def diffusion():  # sampling with a U-Net, guidance, batches of images that go to the host
    def conv(i, o, s=1): return nn.Sequential(nn.Conv2d(i, o, 3, s, 1), nn.GroupNorm(8, o), nn.SiLU())
    class U(nn.Module):
        def __init__(s):
            super().__init__(); c = [64, 128, 256, 512]
            s.i = conv(4, 64); s.d = nn.ModuleList(nn.Sequential(conv(a, b, 2), conv(b, b)) for a, b in zip(c, c[1:])); s.m = conv(512, 512)
            s.u = nn.ModuleList(nn.Sequential(conv(2*b, b), conv(b, a)) for a, b in reversed(list(zip(c, c[1:])))); s.o = nn.Conv2d(64, 4, 3, 1, 1)
        def forward(s, x):
            x = s.i(x); skip = []
            for d in s.d: x = d(x); skip.append(x)
            x = s.m(x)
            for u in s.u: x = F.interpolate(u(torch.cat([x, skip.pop()], 1)), scale_factor=2)
            return s.o(x)
    u = U().to(dev).half().eval()
    with torch.no_grad():
        while left():
            b = random.choice([4, 8, 16, 24]); r = random.choice([128, 192, 256])
            x = R(b, 4, r, r).half()
            for i in range(30):
                e = u(torch.cat([x, x])); a, c = e.chunk(2); e = a + 5 * (c - a); x = x - 0.03 * e + 0.01 * torch.randn_like(x)
            x.float().clamp(-1, 1).cpu()

def lstm():  # language model on sentences of random length, loss read each tenth step
    m = nn.LSTM(1024, 1024, 3, batch_first=True).to(dev); e = nn.Embedding(40000, 1024).to(dev); h = nn.Linear(1024, 40000).to(dev)
    o = torch.optim.AdamW([*m.parameters(), *e.parameters(), *h.parameters()]); n = 0
    while left():
        t = random.randint(20, 180); x = torch.randint(0, 40000, (64, t), device=dev)
        loss = F.cross_entropy(h(m(e(x))[0][:, :-1]).reshape(-1, 40000), x[:, 1:].reshape(-1)); o.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(m.parameters(), 1.0); o.step(); n += 1
        if n % 10 == 0: loss.item()

def dlrm():  # recommendations: 26 tables with sparse gradients
    T = nn.ModuleList(nn.EmbeddingBag(random.choice([10000, 100000, 1000000]), 64, sparse=True) for _ in range(26)).to(dev)
    b = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64)).to(dev); t = nn.Sequential(nn.Linear(64 + 27*26//2, 1024), nn.ReLU(), nn.Linear(1024, 1)).to(dev)
    o1 = torch.optim.SparseAdam(list(T.parameters())); o2 = torch.optim.Adam([*b.parameters(), *t.parameters()]); iu = torch.triu_indices(27, 27, 1, device=dev); n = 0
    while left():
        B = 16384; x = b(torch.rand(B, 13, device="cpu").pin_memory().to(dev, non_blocking=True))
        v = torch.stack([x] + [k(torch.randint(0, k.num_embeddings, (B, 10), device=dev)) for k in T], 1)
        z = torch.bmm(v, v.transpose(1, 2))[:, iu[0], iu[1]]; loss = F.binary_cross_entropy_with_logits(t(torch.cat([x, z], 1)).squeeze(1), (torch.rand(B, device=dev) < .3).float())
        o1.zero_grad(); o2.zero_grad(); loss.backward(); o1.step(); o2.step(); n += 1
        if n % 20 == 0: loss.item()

def cg():  # conjugate gradients on a grid of 384^3: all temporaries from Python, a wait at each step
    n = 384
    def A(x):
        y = 6.01 * x
        for d in range(3): y = y - torch.roll(x, 1, d) - torch.roll(x, -1, d)
        return y
    while left():
        b = R(n, n, n); x = torch.zeros_like(b); r = b - A(x); p = r; rs = (r * r).sum()
        for i in range(60):
            Ap = A(p); a = rs / (p * Ap).sum(); x = x + a * p; r = r - a * Ap; new = (r * r).sum()
            if new.item() < 1e-6 or not left(): break
            p = r + (new / rs) * p; rs = new

def etl():  # tables: filters, sorts, joins and groups whose sizes the data decide
    while left():
        n = random.randint(2, 30) * 1000000
        k = torch.randint(0, n // 10, (n,), device=dev); v = R(n); w = torch.rand(n, device=dev)
        m = w > random.random(); k, v = k[m], v[m]
        u, inv, cnt = torch.unique(k, return_inverse=True, return_counts=True)
        s = torch.zeros(len(u), device=dev).scatter_add_(0, inv, v); mean = s / cnt
        top = torch.nonzero(mean > mean.mean() + 2 * mean.std()).squeeze(1); right = torch.sort(u[top])[0]
        at = torch.searchsorted(right, k).clamp(max=max(len(right) - 1, 0)); hit = right[at] == k; j = torch.stack([k[hit].double(), v[hit].double()], 1)
        r = j[torch.sort(j[:, 1], descending=True)[1]][:1000]; r.cpu()

def moe():  # training with experts: sizes of batches by routing
    d, E = 1024, 16
    att = nn.ModuleList(Block(d, 16) for _ in range(4)).to(dev); g = nn.ModuleList(nn.Linear(d, E) for _ in range(4)).to(dev)
    ex = nn.ModuleList(nn.ModuleList(nn.Sequential(nn.Linear(d, 4*d), nn.GELU(), nn.Linear(4*d, d)) for _ in range(E)) for _ in range(4)).to(dev)
    o = torch.optim.AdamW([*att.parameters(), *g.parameters(), *ex.parameters()], 1e-4); n = 0
    while left():
        x = R(16, random.choice([256, 384, 512]), d)
        with torch.autocast("cuda", torch.bfloat16):
            for i in range(4):
                x, _ = att[i](x); f = x.reshape(-1, d); p, top = torch.softmax(g[i](f).float(), -1).topk(2); y = torch.zeros_like(f)
                for e in range(E):
                    t, k = torch.nonzero(top == e, as_tuple=True)
                    if len(t): y = y.index_add(0, t, (ex[i][e](f[t]) * p[t, k, None]).to(y.dtype))
                x = x + y.view_as(x)
            loss = x.float().pow(2).mean()
        o.zero_grad(); loss.backward(); o.step(); n += 1

def kmeans():  # Lloyd's algorithm on 4 million points, distances in chunks
    X = R(4000000, 96); C = X[torch.randperm(len(X), device=dev)[:2048]]
    while left():
        a = torch.cat([torch.cdist(X[i:i+400000], C).argmin(1) for i in range(0, len(X), 400000)])
        s = torch.zeros_like(C).index_add_(0, a, X); n = torch.bincount(a, minlength=2048).clamp(min=1); new = s / n[:, None]
        if (new - C).norm().item() < 1e-6: C = X[torch.randperm(len(X), device=dev)[:2048]]
        else: C = new

def gan():  # two networks in turn
    G = nn.Sequential(nn.ConvTranspose2d(128, 512, 4), nn.BatchNorm2d(512), nn.ReLU(), *sum(([nn.ConvTranspose2d(a, a//2, 4, 2, 1), nn.BatchNorm2d(a//2), nn.ReLU()] for a in (512, 256, 128)), []), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()).to(dev)
    D = nn.Sequential(*sum(([nn.Conv2d(a, b, 4, 2, 1), nn.LeakyReLU(.2)] for a, b in ((3, 64), (64, 128), (128, 256), (256, 512))), []), nn.Conv2d(512, 1, 4)).to(dev)
    og, od = torch.optim.Adam(G.parameters(), 2e-4), torch.optim.Adam(D.parameters(), 2e-4); n = 0
    while left():
        real = torch.rand(256, 3, 64, 64).to(dev); z = R(256, 128, 1, 1); fake = G(z)
        ld = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean(); od.zero_grad(); ld.backward(); od.step()
        lg = F.softplus(-D(fake)).mean(); og.zero_grad(); lg.backward(); og.step(); n += 1
        if n % 25 == 0: ld.item(); lg.item(); G(z[:64]).detach().cpu()

def fill():  # a service that fills much of the card at each request and frees all of it
    W = R(8192, 8192, dtype=torch.bfloat16)
    with torch.no_grad():
        while left():
            n = random.randint(4, 40) * 8192; x = R(n, 8192, dtype=torch.bfloat16); h = F.gelu(x @ W); y = F.gelu(h @ W) + x; k = y.float().softmax(-1)
            k.max(1)[0].cpu(); del x, h, y, k
            if random.random() < .2: time.sleep(random.random() * .1)

def md():  # molecular dynamics: forces by autograd, lists of neighbours rebuilt, many small tensors
    n = 4096; x = torch.rand(n, 3, device=dev) * 16; v = R(n, 3) * .1; step = 0; nb = None
    while left():
        if step % 10 == 0:
            d = x[:, None] - x[None]; d = d - 16 * torch.round(d / 16); nb = torch.nonzero((d.pow(2).sum(-1) < 6.25).triu(1))
        q = x.detach().requires_grad_(); d = q[nb[:, 0]] - q[nb[:, 1]]; d = d - 16 * torch.round(d.detach() / 16); r2 = d.pow(2).sum(1).clamp(min=.5)
        s6 = r2.pow(-3); e = (4 * (s6 * s6 - s6)).sum(); f = -torch.autograd.grad(e, q)[0].clamp(-50, 50); v = .999 * (v + .002 * f); x = (x + .002 * v) % 16; step += 1
        if step % 50 == 0: e.item()

def mcmc():  # Hamiltonian Monte Carlo: small steps, and samples that are kept
    X = R(50000, 200); y = (torch.rand(50000, device=dev) < .5).float(); w = torch.zeros(200, 64, device=dev); kept = []
    def grad(w): return X.t() @ (torch.sigmoid(X @ w) - y[:, None]) + w
    def U(w): z = X @ w; return (F.softplus(z) - y[:, None] * z).sum(0) + .5 * w.pow(2).sum(0)
    while left():
        p = R(200, 64); q = w; h = U(q) + .5 * p.pow(2).sum(0); p = p - .002 * grad(q) / 2
        for _ in range(8): q = q + .002 * p; p = p - .002 * grad(q)
        a = torch.exp(h - U(q) - .5 * p.pow(2).sum(0)).clamp(max=1); ok = torch.rand(64, device=dev) < a; w = torch.where(ok, q, w); kept.append(w)
        if len(kept) % 20 == 0 and a.mean().item() < 0: break

def bagging():  # fine-tuning of adapters over a frozen model with activation checkpoints, evaluation between
    from torch.utils.checkpoint import checkpoint
    L = nn.ModuleList(Block(1536, 12) for _ in range(12)).to(dev).bfloat16().requires_grad_(False); A = nn.ParameterList([nn.Parameter(R(1536, 16) * .01) for _ in range(24)]); o = torch.optim.Adam(A, 1e-3); n = 0
    def part(i, x): return L[i](x)[0] + ((x @ A[2*i].bfloat16()) @ A[2*i+1].bfloat16().t())
    while left():
        x = R(random.choice([4, 8, 12]), random.choice([512, 1024, 2048]), 1536, dtype=torch.bfloat16)
        for i in range(12): x = checkpoint(part, i, x, use_reentrant=False)
        loss = x.float().pow(2).mean(); o.zero_grad(); loss.backward(); o.step(); n += 1
        if n % 5 == 0:
            with torch.no_grad():
                for _ in range(3):
                    x = R(16, 1024, 1536, dtype=torch.bfloat16)
                    for i in range(12): x = part(i, x)
                    x.float().mean().item()

import gc
long, seconds = seconds, 2.0
start[0] = time.time(); globals()[name](); gc.collect(); torch.cuda.synchronize(); torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats(); seconds = long; torch.manual_seed(8); random.seed(8)
torch.cuda.memory._record_memory_history(max_entries=3000000, context=None)
from torch.profiler import profile, ProfilerActivity
error = ""
with profile(activities=[ProfilerActivity.CUDA]) as prof:
    start[0] = time.time()
    try: globals()[name]()
    except Exception as e: error = repr(e)[:300]
    took = time.time() - start[0]
snap = torch.cuda.memory._snapshot(); torch.cuda.memory._record_memory_history(enabled=None)
n = [len(t) for t in snap["device_traces"]]; peak = torch.cuda.max_memory_allocated() >> 20
prof.export_chrome_trace(f"/tmp/{name}.json")
d = json.load(open(f"/tmp/{name}.json"))
toHost = {e["args"]["correlation"] for e in d["traceEvents"] if e.get("cat") == "gpu_memcpy" and "DtoH" in e["name"]}
def keep(e):
    if e.get("cat") == "cuda_runtime" and "Memcpy" in e["name"]: return e["args"].get("correlation") in toHost
    if e.get("cat") == "cuda_runtime" or e.get("cat") == "cuda_driver": return any(w in e["name"] for w in ("Synchronize", "Malloc", "Free", "HostAlloc"))
    return e.get("cat") in ("user_annotation", None) or e.get("cat") == "gpu_memcpy" and "DtoH" in e["name"]
d["traceEvents"] = [e for e in d["traceEvents"] if keep(e)]
syncs = sum(e.get("cat") == "cuda_runtime" and "Synchronize" in e["name"] for e in d["traceEvents"])
with gzip.open(f"{out}/{name}.sync.kineto.json.gz", "wt", compresslevel=9) as f: json.dump(d, f, separators=(",", ":"))
for t in snap["device_traces"]:
    for e in t: e.pop("frames", None)
with lzma.open(f"{out}/{name}.snapshot.pickle.xz", "wb", preset=6) as f: pickle.dump(snap, f, protocol=4)
os.remove(f"/tmp/{name}.json")
print(f"{name}: {took:.1f} s, {n} entries, {syncs} syncs, peak {peak} MiB, {os.path.getsize(f'{out}/{name}.snapshot.pickle.xz')>>10} KiB {error}", flush=True)
