package gomlx

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A memory is the memory of a device or of the host.
type memory struct {
	backend   *Backend
	collector *gc.Collector
	shared    bool // the collector is shared with other code
	space     pressure.Space
	live      atomic.Int64
	limit     atomic.Int64 // 0 = none known
}

// By default XLA's allocator takes three quarters of a device's memory. The limit leaves a tenth of
// that to the memory that executions need while they run.
const share = 0.75 * 0.9

func newMemory(of *Backend, device int, config gc.Config) (m *memory, err error) {
	m = &memory{backend: of}
	host := of.HasSharedBuffers()
	switch {
	case host && config == (gc.Config{}):
		m.collector, m.shared = gc.Default(), true
		return m, nil
	case !host:
		m.space = pressure.Device(device)
	}
	config.Space = m.space
	if config.Limit == 0 && !host {
		config.Limit = limitOf(device)
	}
	if config.Caps.Assist == 0 {
		config.Caps.Assist = -1
	}
	m.limit.Store(config.Limit)
	m.collector, err = gc.New(config)
	return m, err
}

// limitOf returns the limit of a device by the environment, or a share of the memory of a CUDA
// device.
func limitOf(device int) int64 {
	total := deviceMemory(device)
	if bytes, set := pressure.EnvLimit(pressure.Device(device), func() int64 { return total }); set {
		return bytes
	}
	return int64(share * float64(total))
}

func (m *memory) close() {
	if !m.shared {
		m.collector.Close()
	}
}

// An OutOfMemoryError says that a device has no memory for new buffers, though cycles have freed
// all dead ones.
type OutOfMemoryError struct {
	Space     pressure.Space
	Bytes     int64 // of the new buffers; other needs of the execution are not known
	Live      int64 // bytes of all buffers at the first failure
	Reachable int64 // bytes of the buffers that the program can reach
	Limit     int64 // of live bytes; 0 = none known
	Err       error // the other backend's
}

// Error returns one line.
func (e *OutOfMemoryError) Error() string {
	limit := "none known"
	if e.Limit > 0 {
		limit = pressure.Bytes(e.Limit).String()
	}
	return fmt.Sprintf("gomlx: out of %v memory: %v wanted, %v live, of which %v reachable after a cycle, limit %s: %v",
		e.Space, pressure.Bytes(e.Bytes), pressure.Bytes(e.Live), pressure.Bytes(e.Reachable), limit, e.Err)
}

// Unwrap returns the other backend's error.
func (e *OutOfMemoryError) Unwrap() error { return e.Err }

// exhausted reports whether a backend's error means that memory ran out. PJRT's code 8 is
// RESOURCE_EXHAUSTED.
func exhausted(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "RESOURCE_EXHAUSTED") || strings.Contains(text, "PJRT error (code=8)")
}

// climb calls run, which makes buffers with the given bytes in the expected time. If memory is
// short it runs a cycle, waits for the releases, and tries again. If a second cycle frees memory,
// it tries once more.
func (m *memory) climb(bytes int64, expected time.Duration, run func() error) error {
	err := m.patiently(expected, run)
	if !exhausted(err) {
		return err
	}
	first := m.live.Load()
	for try := range 2 {
		if freed := m.makeRoom(); try > 0 && freed <= 0 {
			break
		}
		if err = m.patiently(expected, run); !exhausted(err) {
			return err
		}
	}
	return &OutOfMemoryError{m.space, bytes, first, m.live.Load(), m.limit.Load(), err}
}

// makeRoom runs a cycle because memory is short, and returns the bytes that it freed. It lowers the
// limit, so that later cycles start when seven eighths of this garbage is there.
func (m *memory) makeRoom() (freed int64) {
	before := m.live.Load()
	m.collector.Collect(policy.TriggerRefusal)
	freed = max(0, before-m.live.Load())
	if limit := m.limit.Load(); !m.shared && freed > 0 && (limit == 0 || before-freed/8 < limit) {
		m.limit.Store(before - freed/8)
		m.collector.SetLimit(before - freed/8)
	}
	return freed
}

// An execution that lasts longer than patience, and much longer than expected, may be waiting for
// memory. After atMost, a cycle beside it costs little in any case.
const (
	patience = 100 * time.Millisecond
	atMost   = time.Second
)

// patiently calls run. XLA's allocator waits up to 10 s for freed memory, so a run that takes long
// gets a cycle beside it.
func (m *memory) patiently(expected time.Duration, run func() error) error {
	if limit := m.limit.Load(); m.shared || limit > 0 && m.live.Load() < limit/2 {
		return run()
	}
	timer := time.AfterFunc(min(patience+4*expected, atMost), func() { m.collector.Collect(policy.TriggerRefusal) })
	defer timer.Stop()
	return run()
}
