# A snapshot of SIZE bytes as torch.cuda.memory._dump_snapshot writes it: protocol 4.
import pickle,random,sys
size=int(float(sys.argv[2])*2**30)
random.seed(1)
class Count:
    def __init__(s,f): s.f=f; s.n=0
    def write(s,b): s.n+=len(b); return s.f.write(b)
f=open(sys.argv[1],'wb')
# written by hand: a list of dicts, in batches of 1000, keys from the memo
def u(s): b=s.encode(); return b'\x8c'+bytes([len(b)])+b
memo={}
out=[]
def key(s):
    if s in memo:
        n=memo[s]; return (b'h'+bytes([n])) if n<256 else b'j'+n.to_bytes(4,'little')
    memo[s]=len(memo)+count[0]; 
    r=u(s)+b'\x94'; return r
import struct
class M: n=0
def put():
    M.n+=1; return b'\x94'
def text(s):
    if s in memo:
        n=memo[s]; return (b'h'+bytes([n])) if n<256 else b'j'+struct.pack('<I',n)
    memo[s]=M.n; r=u(s)+put(); return r
def num(n):
    if 0<=n<256: return b'K'+bytes([n])
    if 0<=n<65536: return b'M'+struct.pack('<H',n)
    if 0<=n<2**31: return b'J'+struct.pack('<i',n)
    return b'\x8a\x08'+struct.pack('<q',n)
def entry(action,addr,sz,us):
    r=[b'}',put(),b'(']
    r+=[text('action'),text(action),text('addr'),num(addr),text('size'),num(sz),text('stream'),num(0),text('time_us'),num(us),text('compile_context'),text('N/A'),text('user_metadata'),text('')]
    r.append(b'u'); return b''.join(r)
f.write(b'\x80\x04'); n=2
f.write(b'}'+put()+b'('+text('segments')+b']'+put()+text('device_traces')+b']'+put()+b'(' + b']'+put())
free=list(range(0x7f0000000000,0x7f0000000000+20000*(1<<20),1<<20)); random.shuffle(free)
live=[]; us=1790000000000000
done=0; events=0
while done<size:
    parts=[b'(']; k=0
    while k<1000:
        us+=random.randrange(1,9)
        if free and (not live or random.random()<0.5):
            a=free.pop(); sz=random.choice((512,4096,65536,1<<20)); live.append((a,sz))
            parts.append(entry('alloc',a,sz,us)); k+=1; events+=1
        else:
            i=random.randrange(len(live)); live[i],live[-1]=live[-1],live[i]; a,sz=live.pop(); free.append(a)
            parts.append(entry('free_requested',a,sz,us)); parts.append(entry('free_completed',a,sz,us)); k+=2; events+=1
    parts.append(b'e'); b=b''.join(parts); f.write(b); done+=len(b)
f.write(b'e'+b'u.'); f.close(); print(done,events)
