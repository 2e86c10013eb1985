package main

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"time"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/backends/xla"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// open returns the innermost backend. The allocator of its plugin has the given bytes of each
// device.
func (e *experiment) open() (*memo, error) {
	if e.plugin == "" {
		b, err := backends.NewWithConfig("go")
		return newMemo(b), err
	}
	options := pjrt.NamedValuesMap{"preallocate": true, "memory_fraction": float32(float64(e.arena) / float64(e.device))}
	b, err := xla.NewWithOptions(e.plugin, options)
	return newMemo(b), err
}

// A memo reuses compiled computations. The n-th computation of a name is the same in each run, so
// the memo compiles it only once.
type memo struct {
	backends.Backend
	mu      sync.Mutex
	made    map[string]backends.Executable
	program string
	times   map[string]int   // since the begin of a run of the program
	scratch map[string]int64 // bytes that an execution of a program needs at most beside its inputs and results
	ballast []*tensors.Tensor
	held    int64 // buffers of it
	chunk   *graph.Exec
}

func newMemo(b backends.Backend) *memo {
	return &memo{Backend: b, made: map[string]backends.Executable{}, scratch: map[string]int64{}}
}

type remembered struct{ backends.Executable }

func (remembered) Finalize() {}

type builder struct {
	backends.Builder
	name string
	memo *memo
}

func (m *memo) Builder(name string) backends.Builder {
	return &builder{m.Backend.Builder(name), name, m}
}

func (b *builder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	b.memo.mu.Lock()
	defer b.memo.mu.Unlock()
	key := fmt.Sprint(b.memo.program, b.name, b.memo.times[b.name])
	b.memo.times[b.name]++
	if made := b.memo.made[key]; made != nil {
		return made, nil
	}
	made, err := b.Builder.Compile(outputs, shardings)
	if err == nil {
		b.memo.made[key] = remembered{made}
		b.memo.scratch[b.memo.program] = max(b.memo.scratch[b.memo.program], temporary(made))
	}
	return b.memo.made[key], err
}

// temporary returns the bytes that XLA needs for an execution beside its inputs and results. go-xla
// reads them, and GoMLX hides them.
func temporary(made backends.Executable) int64 {
	loaded := reflect.Indirect(reflect.ValueOf(made)).FieldByName("exec")
	if !loaded.IsValid() {
		return 0 // simplego
	}
	return loaded.Elem().FieldByName("OnDeviceMemoryUsageStats").FieldByName("Temporary").Int()
}

// leave fills the arena of the first device up to the bytes left.
func (m *memo) leave(arena, left int64) error {
	const chunk = 16 << 20
	if m.chunk == nil {
		m.chunk = graph.MustNewExec(m.Backend, func(g *graph.Graph) *graph.Node {
			return graph.BroadcastToDims(graph.Scalar(g, dtypes.Float32, 1), chunk/4)
		})
	}
	for _, t := range m.ballast {
		t.MustFinalizeAll()
	}
	m.ballast, m.held = nil, 0
	for range (arena - left) / chunk {
		all, err := m.chunk.Exec()
		if err != nil {
			return err
		}
		m.ballast = append(m.ballast, all...)
		m.held++
	}
	return nil
}

// settle waits until only the ballast is alive. After a second it returns the number of other
// buffers.
func (m *memo) settle() (left int64) {
	for range 50 {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
		if left = pjrt.BuffersAlive() - m.held; left == 0 {
			break
		}
	}
	return left
}

// A forgetful backend ignores all calls that free buffers by hand.
type forgetful struct{ backends.Backend }

func (forgetful) BufferFinalize(backends.Buffer) error { return nil }
