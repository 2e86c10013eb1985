import json,sys,itertools,collections
rows=[json.loads(l) for l in open(sys.argv[1])]
live={};sim={}
for r in rows:
    p=r['policy']; s=p.startswith('sim:'); k=(r['ballast'],r['trace'],r['limit_factor'],p[4:] if s else p)
    k=(k[0],k[1],round(k[2]*2)/2,k[3])
    (sim if s else live)[k]=r
def cyc(r): return r['collections']+r['refusal_collections']
def off(a,b): return (b-a)/a if a else (0 if b==a else 9.9)
crit={
 'cycles within 10 %':(.9,lambda l,s:abs(off(cyc(l),cyc(s)))<=.1),
 'exposed within 25 % or 5 ms':(.8,lambda l,s:abs(s['exposed_pause_ns']-l['exposed_pause_ns'])<=max(5e6,.25*l['exposed_pause_ns'])),
 'p99 pause within 25 %':(.7,lambda l,s:abs(off(l['p99_pause_ns'],s['p99_pause_ns']))<=.25),
 'peak within 2 %':(.95,lambda l,s:abs(off(l['peak_live_bytes'],s['peak_live_bytes']))<=.02),
 'elapsed within 3 %':(.95,lambda l,s:abs(off(l['elapsed_ns'],s['elapsed_ns']))<=.03),
 'failures exact +-10 %':(1,lambda l,s:abs(s['failed_allocs']-l['failed_allocs'])<=.1*l['failed_allocs']),
}
def report(keys,name):
    print(name,len(keys),'cells')
    for c,(want,f) in crit.items():
        n=sum(f(live[k],sim[k]) for k in keys)
        print(f'  {c}: {n} of {len(keys)} ({n/len(keys):.1%}), wanted {want:.0%}')
    ok=n=0; wrong=[]
    for g,ks in itertools.groupby(sorted(keys,key=lambda k:k[:3]),key=lambda k:k[:3]):
        for a,b in itertools.combinations(list(ks),2):
            d=live[a]['exposed_pause_ns']-live[b]['exposed_pause_ns']
            if abs(d)>5e6:
                n+=1; good=(sim[a]['exposed_pause_ns']-sim[b]['exposed_pause_ns'])*d>0; ok+=good
                if not good: wrong.append((a,b[3]))
    print(f'  order of pairs that differ by more than 5 ms: {ok} of {n} ({ok/n:.1%})' )
    return wrong
if __name__=='__main__':
    keys=sorted(set(live)&set(sim))
    w=report(keys,'all'); 
    for b in sorted(set(k[0] for k in keys)): report([k for k in keys if k[0]==b],b)
    if len(sys.argv)>2:
        for k in keys:
            l,s=live[k],sim[k]
            bad=[c.split()[0] for c,(w_,f) in crit.items() if not f(l,s)]
            print(*k,'cyc',cyc(l),cyc(s),'exp %.1f %.1f'%(l['exposed_pause_ns']/1e6,s['exposed_pause_ns']/1e6),'p99 %.2f %.2f'%(l['p99_pause_ns']/1e6,s['p99_pause_ns']/1e6),'el %.3f %.3f'%(l['elapsed_ns']/1e9,s['elapsed_ns']/1e9),'cycle %.2f %.2f'%(l['gc_busy_ns']/1e6/max(1,cyc(l)),s['gc_busy_ns']/1e6/max(1,cyc(s))),'nat',l.get('natural_collections',0),*bad)
        print(w)
