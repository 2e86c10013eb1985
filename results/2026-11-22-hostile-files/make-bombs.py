import gzip
B={"text":(b"eagergc trace 1\n",b"0 mark\n",30_000_000),"pickle":(b"\x80\x04K\x01",b"\x94",100_000_000),"rmm":(b"Thread,Time,Action,Pointer,Size,Stream\n",b"1,00:00:00.000000,allocate,0x10,8,0\n1,00:00:00.000000,free,0x10,8,0\n",3_000_000),"kineto":(b'{"traceEvents": [',b'{"ph":"X","name":"cudaStreamSynchronize","ts":1,"dur":5,"tid":1},',2_500_000)}
for n,(h,a,t) in B.items():
    with gzip.open(f'bombs/{n}.gz','wb',6) as f:
        f.write(h); c=a*10000
        for _ in range(t//10000): f.write(c)
