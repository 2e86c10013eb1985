"""Record what CuPy's memory pool does, with times, for eagergc.

CuPy's own DebugPrintHook writes one JSON object per line, in order but without
times. This hook writes the same objects, and adds what a replay needs:

    t_ns    when it happened: ns since 1970, on one monotonic clock
    stream  the current stream of the thread, as an address; 0 is the default
    thread  the identifier of the thread

It also writes one object for each wait for the device:

    {"hook": "sync", "t_ns": start, "dur_ns": length, "name": what waited}

Use, around the part of a program that matters:

    from eagergc_hook import EagerGCHook
    with EagerGCHook("run.jsonl"):
        train()

then `replay import run.jsonl -o run.arrows`. Memory hooks belong to the thread
that enters them: enter one hook in each thread, each with a file of its own.
Waits are seen in Stream.synchronize and cupy.asnumpy, and in Event.synchronize and
Device.synchronize where CuPy lets them be changed (14.2 does not). Others can be
timed by hand: `with hook.wait("my own"): ...`. Of waits inside a wait only the
outermost is written.
"""

import contextlib
import functools
import json
import threading
import time

import cupy
from cupy.cuda import memory_hook

VERSION = 1


class EagerGCHook(memory_hook.MemoryHook):
    """A CuPy memory hook that writes JSON lines to a path or a text file."""

    name = "EagerGCHook"

    def __init__(self, file):
        self._own = isinstance(file, str)
        self._file = open(file, "w", encoding="utf-8") if self._own else file
        self._lock = threading.Lock()
        self._base = time.time_ns() - time.perf_counter_ns()
        self._undo = []
        self._waiting = threading.local()
        self._write({
            "hook": "eagergc", "version": VERSION, "cupy": cupy.__version__,
            "t_ns": self._now(), "used_bytes": cupy.get_default_memory_pool().used_bytes(),
            "total_bytes": cupy.get_default_memory_pool().total_bytes(),
        })

    def _now(self):
        return self._base + time.perf_counter_ns()

    def _write(self, row):
        line = json.dumps(row, separators=(",", ":")) + "\n"
        with self._lock:
            self._file.write(line)

    def _event(self, hook, row):
        row = {"hook": hook, **row, "t_ns": self._now()}
        if "pmem_id" in row:
            row["pmem_id"] = hex(row["pmem_id"])
        row["stream"] = cupy.cuda.get_current_stream().ptr
        row["thread"] = threading.get_ident()
        self._write(row)

    # What CuPy calls, after the fact, but for a free: then the time is that at
    # which the program let go of the memory.
    def alloc_postprocess(self, **row):
        self._event("alloc", row)

    def malloc_postprocess(self, **row):
        self._event("malloc", row)

    def free_preprocess(self, **row):
        self._event("free", row)

    @contextlib.contextmanager
    def wait(self, name):
        """Time a wait for the device, and write it."""
        if getattr(self._waiting, "now", False):
            yield
            return
        self._waiting.now = True
        start = self._now()
        try:
            yield
        finally:
            self._waiting.now = False
            self._write({"hook": "sync", "t_ns": start, "dur_ns": self._now() - start, "name": name,
                         "device_id": cupy.cuda.runtime.getDevice(), "thread": threading.get_ident()})

    def _time(self, owner, attribute, name):
        """Put a clock around a function that waits, where CuPy lets us."""
        plain = getattr(owner, attribute, None)
        if plain is None:
            return

        @functools.wraps(plain)
        def timed(*args, **kwargs):
            with self.wait(name):
                return plain(*args, **kwargs)

        try:
            setattr(owner, attribute, timed)
        except TypeError:  # a class of C: it cannot be changed
            return
        self._undo.append((owner, attribute, plain))

    def __enter__(self):
        for cls in (cupy.cuda.stream._BaseStream, cupy.cuda.Event, cupy.cuda.Device):
            self._time(cls, "synchronize", cls.__name__.removeprefix("_Base") + ".synchronize")
        self._time(cupy, "asnumpy", "asnumpy")
        return super().__enter__()

    def __exit__(self, *exc):
        super().__exit__(*exc)
        while self._undo:
            owner, attribute, plain = self._undo.pop()
            setattr(owner, attribute, plain)
        self._file.flush()
        if self._own:
            self._file.close()
