// Wasm runs a plugin for each request in a separate wazero runtime, as a host does that isolates its
// tenants. Wazero's experimental allocator maps linear memories outside the Go heap.
package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const memoryBytes = 16 << 20 // of an instance

func main() {
	frame.Main("wasm", frame.Client{Workers: 2, Requests: 400, Start: start})
}

func start(w *frame.Way) (frame.Service, error) {
	compiled := wazero.NewCompilationCache()
	ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory {
		return &linear{way: w}
	}))
	return func(i int) error {
		r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(compiled))
		module, err := r.Instantiate(ctx, frame.Plugin(memoryBytes>>16))
		if err != nil {
			return err
		}
		if w.Closes() {
			defer r.Close(ctx)
		}
		out, err := module.ExportedFunction("run").Call(ctx, uint64(i))
		if err != nil {
			return err
		}
		if out[0] != memoryBytes {
			return fmt.Errorf("the plugin has written up to %d", out[0])
		}
		runtime.KeepAlive(r)
		return nil
	}, nil
}

// A linear is the memory of one plugin. It never grows.
type linear struct {
	way  *frame.Way
	data []byte
	done func()
}

func (l *linear) Reallocate(size uint64) []byte {
	if l.data != nil {
		return nil
	}
	data, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	l.data = data
	l.done = frame.Keep(l.way, l, int64(size), func(data []byte) { unix.Munmap(data) }, data)
	return data
}

func (l *linear) Free() { l.done() }
