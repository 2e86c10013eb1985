# Files of 32 MB for each reader: what such files mostly hold, and the shortest records
# that are worth one (short-*), which are the most work for each byte.
import os, random, sys
out = sys.argv[1]
size = 32_000_000
random.seed(1)

def fill(name, head, record, tail=""):
    with open(os.path.join(out, name), "w") as f:
        n = f.write(head)
        i = 0
        while n < size:
            n += f.write(record(i)); i += 1
        f.write(tail)

def pair(alloc, free):  # every second record frees what the one before it allocated
    return lambda i: (free if i % 2 else alloc)(i // 2)

where = lambda i: f"0x7f{(i % 50000) * 512:010x}"
fill("typical.text", "eagergc trace 1\n", pair(
    lambda i: f"{i*2000} alloc id={i+1} bytes={512 << i % 12} space=device0 label=\"step {i%300}\"\n",
    lambda i: f"{i*2000+900} free id={i+1} bytes={512 << i % 12} space=device0\n"))
fill("short.text", "eagergc trace 1\n", lambda i: "0 mark\n")
clock = lambda i: f"{i//3600000000%24:02}:{i//60000000%60:02}:{i//1000000%60:02}.{i%1000000:06}"
fill("typical.rmm.csv", "Thread,Time,Action,Pointer,Size,Stream\n", pair(
    lambda i: f"1234,{clock(i*50)},allocate,{where(i)},{512 << i % 12},0\n",
    lambda i: f"1234,{clock(i*50+20)},free,{where(i)},{512 << i % 12},0\n"))
fill("short.rmm.csv", "Thread,Time,Action,Pointer,Size,Stream\n", pair(
    lambda i: "1,00:00:00.000000,allocate,0x1,8,0\n", lambda i: "1,00:00:00.000000,free,0x1,8,0\n"))
fill("typical.cupy.jsonl", "", pair(
    lambda i: f'{{"hook":"malloc","device_id":0,"size":{500 << i % 12},"mem_size":{512 << i % 12},"mem_ptr":{140002979741696 + i % 50000 * 512},"pmem_id":"{where(i)}"}}\n',
    lambda i: f'{{"hook":"free","device_id":0,"mem_size":{512 << i % 12},"mem_ptr":{140002979741696 + i % 50000 * 512},"pmem_id":"{where(i)}"}}\n'))
fill("short.cupy.jsonl", "", pair(
    lambda i: '{"hook":"malloc","device_id":0,"size":1,"mem_size":512,"mem_ptr":512,"pmem_id":"0x1"}\n',
    lambda i: '{"hook":"free","device_id":0,"mem_size":512,"mem_ptr":512,"pmem_id":"0x1"}\n'))
operation = lambda name, i, more: f'{{"category":"operation","name":"{name}",{more}"tags":{{"replay":"true"}},"timestamp":{2000+i}}}\n'
head = ('{"category":"metadata","name":"version","numeric_args":{"major":2022,"minor":3,"patch":1},"string_args":{"rc":"1"},"tags":{},"timestamp":1000}\n'
    '{"category":"operation","name":"make_memory_resource","numeric_args":{"introspection":1},"string_args":{"allocator_ref":"0xa"},"tags":{"allocator_name":"HOST","replay":"true"},"timestamp":1001}\n')
fill("typical.umpire.jsonl", head, pair(
    lambda i: operation("allocate", 2*i, f'"numeric_args":{{"size":{512 << i % 12}}},"string_args":{{"allocator_ref":"0xa","pointer":"{where(i)}"}},'),
    lambda i: operation("deallocate", 2*i+1, f'"string_args":{{"allocator_ref":"0xa","pointer":"{where(i)}"}},')))
fill("typical.kineto.json", '{"schemaVersion":1,"baseTimeNanoseconds":1700000000000000000,"traceEvents":[', lambda i: ("," if i else "") +
    f'{{"ph":"X","cat":"cuda_runtime","name":"{"cudaStreamSynchronize" if i % 50 == 0 else "cudaLaunchKernel"}","pid":1,"tid":1,"ts":{i*7}.125,"dur":5.5,"args":{{"correlation":{i},"External id":{i}}}}}', "]}")
fill("short.kineto.json", '{"traceEvents":[', lambda i: ("," if i else "") + '{"ph":"X","name":"cudaStreamSynchronize","ts":1,"dur":5,"tid":1}', "]}")
fill("tiny.kineto.json", '{"traceEvents":[', lambda i: ("," if i else "") + "{}", ',{"ph":"X","name":"cudaStreamSynchronize","ts":1,"dur":5,"tid":1}]}')
def binary(name, head, piece, tail):
    with open(os.path.join(out, name), "wb") as f:
        f.write(head + piece * (size // len(piece)) + tail)
binary("memoize.pickle", b"\x80\x04K\x01", b"\x94", b".")       # keeps the same number again and again
binary("lists.pickle", b"\x80\x04", b"]0", b"K\x01.")           # an empty list, dropped
binary("dicts.pickle", b"\x80\x04](", b"}", b"e.")              # a list of empty dicts
binary("numbers.pickle", b"\x80\x04](", b"K\x01", b"e.")
