# Workers are killed (SIGKILL) at random moments until 100 have been; then they may end. The answer is compared.
import subprocess,random,time,sys,shutil,os,filecmp,glob
random.seed(int(sys.argv[3]) if len(sys.argv)>3 else 1)
mode,kills=sys.argv[1],int(sys.argv[2])
P='never,cudajl,sqrt,v8step,pacer,optimum-overlap'
out='kill-'+mode; shutil.rmtree(out,ignore_errors=True); os.makedirs(out)
jobs='jobs200'
ref=out+'/ref'
subprocess.run(['./replay','fleet',jobs,'--policies',P,'-o',ref,'--cells=false'],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL,check=True)
def start(i):
    if mode=='local':
        return subprocess.Popen(['./replay','fleet',jobs,'--policies',P,'-o',f'{out}/w{i}','--cache',out+'/cache','--workers','1','--cells=false'],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL)
    return subprocess.Popen(['./fleet-beam','--runner=prism','--input='+jobs,'--output='+f'{out}/w{i}','--cache='+out+'/cache','--plan='+ref+'/fleet.json'],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL)
n=3 if mode=='local' else 1
t0=time.time()
ws=[start(i) for i in range(n)]; killed=early=0
while killed<kills:
    time.sleep(random.random()*(0.6 if mode=='local' else 2.5))
    i=random.randrange(n)
    if ws[i].poll() is None:
        ws[i].kill(); ws[i].wait(); killed+=1
    else:
        early+=1
        assert ws[i].returncode==0,ws[i].returncode
        shutil.rmtree(out+'/cache',ignore_errors=True) # it had ended: begin anew, so that kills meet work
    ws[i]=start(i)
pages=len(glob.glob(out+'/cache/*/*/*'))
for w in ws: assert w.wait()==0
same=all(filecmp.cmp(f'{out}/w{i}/fleet.json',ref+'/fleet.json',shallow=False) for i in range(n))
print(f'{mode}: {killed} kills, {early} times a worker had ended before, {pages} pages when the last was killed, same bytes: {same}, {time.time()-t0:.0f} s',flush=True)
assert same
