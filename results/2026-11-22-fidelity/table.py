import json,sys,itertools
def load(*files):
    live={};sim={};left=[]
    for f in files:
        for l in open(f):
            l=l.strip()
            if not l: continue
            try: r=json.loads(l)
            except Exception: print('bad',l[:100]); continue
            if 'trace' not in r: left.append(r); continue
            p=r['policy']; s=p.startswith('sim:')
            k=(r['where'],r['ballast'],r['run'],r['trace'],round(r['limit_factor']*2)/2,p[4:] if s else p)
            (sim if s else live)[k]=r
    return live,sim,left
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
def report(live,sim,keys,name):
    print(name,len(keys),'cells')
    for c,(want,f) in crit.items():
        n=sum(f(live[k],sim[k]) for k in keys)
        print(f'  {c}: {n} of {len(keys)} ({n/len(keys):.1%}), wanted {want:.0%}')
    ok=n=0
    for g,ks in itertools.groupby(sorted(keys,key=lambda k:k[:5]),key=lambda k:k[:5]):
        for a,b in itertools.combinations(list(ks),2):
            d=live[a]['exposed_pause_ns']-live[b]['exposed_pause_ns']
            if abs(d)>5e6:
                n+=1; ok+=(sim[a]['exposed_pause_ns']-sim[b]['exposed_pause_ns'])*d>0
    print(f'  order: {ok} of {n} ({ok/max(1,n):.1%})')
def cells(live,sim,keys):
    for k in keys:
        l,s=live[k],sim[k]
        bad=[c.split()[0] for c,(w_,f) in crit.items() if not f(l,s)]
        print(*k[1:],'cyc',cyc(l),cyc(s),'exp %.1f %.1f'%(l['exposed_pause_ns']/1e6,s['exposed_pause_ns']/1e6),'p99 %.2f %.2f'%(l['p99_pause_ns']/1e6,s['p99_pause_ns']/1e6),'el %.3f %.3f'%(l['elapsed_ns']/1e9,s['elapsed_ns']/1e9),'cycle %.2f %.2f'%(l['gc_busy_ns']/1e6/max(1,cyc(l)),s['gc_busy_ns']/1e6/max(1,cyc(s))),'lost %.1f'%(l.get('lost_ns',0)/1e6) if 'lost_ns' in l else '',*bad)
if __name__=='__main__':
    live,sim,left=load(*sys.argv[1:])
    keys=sorted(set(live)&set(sim))
    for w in ('host','gpu'):
        for b in ('1MiB','16MiB','256MiB'):
            ks=[k for k in keys if k[0]==w and k[1]==b and k[2]!='compute']
            if ks: report(live,sim,ks,w+' '+b); cells(live,sim,ks)
    ks=[k for k in keys if k[2]=='compute']; print('compute'); cells(live,sim,ks)
    print(len(left),'left out'); print([x for x in left if 'failed' in x])
