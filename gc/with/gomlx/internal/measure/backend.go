package main

import (
	"fmt"
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

// open makes the backend below all: a plugin's whose allocator has so many bytes of each device.
func (e *experiment) open() (*memo, error) {
	if e.plugin == "" {
		b, err := backends.NewWithConfig("go")
		return newMemo(b), err
	}
	options := pjrt.NamedValuesMap{"preallocate": true, "memory_fraction": float32(float64(e.arena) / float64(e.device))}
	b, err := xla.NewWithOptions(e.plugin, options)
	return newMemo(b), err
}

// A memo compiles what a program has compiled before only once: what is built n-th by its name is the same in each run.
type memo struct {
	backends.Backend
	mu      sync.Mutex
	made    map[string]backends.Executable
	program string
	times   map[string]int      // since the begin of a run of the program
	ballast [][]*tensors.Tensor // by device
	chunk   *graph.Exec
}

func newMemo(b backends.Backend) *memo {
	return &memo{Backend: b, made: map[string]backends.Executable{}}
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
	}
	return b.memo.made[key], err
}

// leave fills the arena of each device so that so many bytes are left of the first one's, twice as many of the second one's.
func (m *memo) leave(bytes, arena int64) error {
	const chunk = 16 << 20
	if m.chunk == nil {
		m.chunk = graph.MustNewExec(m.Backend, func(g *graph.Graph) *graph.Node {
			return graph.BroadcastToDims(graph.Scalar(g, dtypes.Float32, 1), chunk/4)
		})
		m.ballast = make([][]*tensors.Tensor, m.NumDevices())
	}
	for device := range m.ballast {
		for _, t := range m.ballast[device] {
			t.MustFinalizeAll()
		}
		m.ballast[device] = nil
		for n := int64(0); n < (arena-bytes*int64(device+1))/chunk; n++ {
			all, err := m.chunk.ExecOnDevice(backends.DeviceNum(device))
			if err != nil {
				return err
			}
			m.ballast[device] = append(m.ballast[device], all...)
		}
	}
	return nil
}

// held is how many buffers the ballast is.
func (m *memo) held() (n int64) {
	for _, all := range m.ballast {
		n += int64(len(all))
	}
	return n
}

// settle returns once no buffer is alive but the ballast, and how many are if that takes a second.
func (m *memo) settle() (left int64) {
	for range 50 {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
		if left = pjrt.BuffersAlive() - m.held(); left == 0 {
			break
		}
	}
	return left
}

// forgetful is a backend that nobody can give anything back to by hand.
type forgetful struct{ backends.Backend }

func (forgetful) BufferFinalize(backends.Buffer) error { return nil }
