package gomlx

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/trace"
)

// A tight backend has devices on which so many bytes fit and no more: it says so in
// the words of XLA. It does what simplego does.
type tight struct {
	backends.Backend
	fits []int64
	wait time.Duration // for room, as XLA's allocator does

	mu   sync.Mutex
	live map[backends.Buffer]placed
	used []int64
}

type placed struct {
	on    backends.DeviceNum
	bytes int64
}

func newTight(t testing.TB, fits ...int64) *tight {
	t.Helper()
	inner, err := backends.NewWithConfig("go")
	if err != nil {
		t.Fatal(err)
	}
	return &tight{Backend: inner, fits: fits, live: map[backends.Buffer]placed{}, used: make([]int64, len(fits))}
}

func (b *tight) NumDevices() int { return len(b.fits) }

func (b *tight) BufferDeviceNum(x backends.Buffer) (backends.DeviceNum, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live[x].on, nil
}

// HasSharedBuffers says that this is no memory of the host.
func (b *tight) HasSharedBuffers() bool { return false }

func (b *tight) room(d backends.DeviceNum, shapes ...shapes.Shape) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := b.used[d]
	for _, s := range shapes {
		if used += int64(s.Memory()); used > b.fits[d] {
			return fmt.Errorf("PJRT error (code=8): RESOURCE_EXHAUSTED: Out of memory while trying to allocate %d bytes", s.Memory())
		}
	}
	return nil
}

func (b *tight) took(d backends.DeviceNum, x backends.Buffer, s shapes.Shape) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live[x] = placed{d, int64(s.Memory())}
	b.used[d] += b.live[x].bytes
}

func (b *tight) gave(x backends.Buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used[b.live[x].on] -= b.live[x].bytes
	delete(b.live, x)
}

func (b *tight) BufferFromFlatData(d backends.DeviceNum, flat any, s shapes.Shape) (backends.Buffer, error) {
	if err := b.room(d, s); err != nil {
		return nil, err
	}
	x, err := b.Backend.BufferFromFlatData(0, flat, s)
	if err == nil {
		b.took(d, x, s)
	}
	return x, err
}

func (b *tight) BufferFinalize(x backends.Buffer) error {
	b.gave(x)
	return b.Backend.BufferFinalize(x)
}

func (b *tight) Builder(name string) backends.Builder {
	return &tightBuilder{b.Backend.Builder(name), b}
}

type tightBuilder struct {
	backends.Builder
	backend *tight
}

func (b *tightBuilder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	inner, err := b.Builder.Compile(outputs, shardings)
	return &tightExecutable{inner, b.backend}, err
}

type tightExecutable struct {
	backends.Executable
	backend *tight
}

func (e *tightExecutable) Execute(inputs []backends.Buffer, donate []bool, d backends.DeviceNum) ([]backends.Buffer, error) {
	err := e.backend.room(d, e.Outputs()...)
	for begin := time.Now(); err != nil; err = e.backend.room(d, e.Outputs()...) {
		if time.Since(begin) >= e.backend.wait {
			return nil, err
		}
		time.Sleep(time.Millisecond)
	}
	for i, taken := range donate {
		if taken {
			e.backend.gave(inputs[i])
		}
	}
	outputs, err := e.Executable.Execute(inputs, donate, 0)
	for i, x := range outputs {
		e.backend.took(d, x, e.Outputs()[i])
	}
	return outputs, err
}

// wrap returns a backend over inner with its first device's memory.
func wrap(t testing.TB, inner backends.Backend, config gc.Config) (*Backend, *memory) {
	t.Helper()
	b, err := Wrap(inner, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b, b.of(0)
}

const arrayBytes = 64 << 10

func array() *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(make([]float32, arrayBytes/4), arrayBytes/4)
}

func twice(x *graph.Node) *graph.Node { return graph.Add(x, x) }

// live waits until so many bytes are live on both.
func live(t *testing.T, m *memory, b *tight, want int64) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		used := b.used[0]
		b.mu.Unlock()
		if m.live.Load() == want && used == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d bytes counted, %d in use, want %d", m.live.Load(), used, want)
		}
	}
}

func TestForgottenArraysFitIntoADeviceOfFour(t *testing.T) {
	device := newTight(t, 4*arrayBytes)
	b, m := wrap(t, device, gc.Config{Limit: 4 * arrayBytes})
	run := graph.MustNewExec(b, twice)
	x := array()
	for i := range 200 {
		y, err := run.Exec1(x)
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if i%50 == 0 {
			if got := tensors.MustCopyFlatData[float32](y); len(got) != arrayBytes/4 {
				t.Fatalf("%d values", len(got))
			}
		}
	}
	m.collector.Collect(policy.TriggerExplicit)
	runtime.KeepAlive(x)
	if s := m.live.Load(); s > 4*arrayBytes {
		t.Errorf("%d bytes live", s)
	}
}

// What is forgotten on one device has cycles of that device's collector, and the other one's limit
// holds what it held.
func TestEachDeviceHasItsOwnLimitAndItsOwnCycles(t *testing.T) {
	device := newTight(t, 4*arrayBytes, 8*arrayBytes)
	b, err := Wrap(device, gc.Config{Limit: 4 * arrayBytes, Idle: -1}, gc.Config{Limit: 8 * arrayBytes, Idle: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // or Go's own cycles might come
	run := graph.MustNewExec(b, twice)
	asked := func(n backends.DeviceNum) uint64 {
		of := b.Collector(n).Stats().Cycles
		return of[policy.TriggerPolicy] + of[policy.TriggerRefusal]
	}
	for n := range backends.DeviceNum(2) {
		before, x := [2]uint64{asked(0), asked(1)}, array()
		for i := range 100 {
			if _, _, err := run.ExecWithGraphOnDevice(n, x); err != nil {
				t.Fatalf("device %d, step %d: %v", n, i, err)
			}
			if live, limit := b.of(n).live.Load(), b.of(n).limit.Load(); live > limit {
				t.Fatalf("device %d, step %d: %d bytes live, limit %d", n, i, live, limit)
			}
		}
		if asked(n) == before[n] {
			t.Errorf("no cycle for device %d", n)
		}
		if other := 1 - n; asked(other) != before[other] {
			t.Errorf("device %d had %d cycles while nothing was made there", other, asked(other)-before[other])
		}
		runtime.KeepAlive(x)
	}
}

func TestWithoutALimitTheFirstRefusalSetsOne(t *testing.T) {
	device := newTight(t, 8*arrayBytes)
	t.Setenv(gc.PolicyVariable, "never")
	b, m := wrap(t, device, gc.Config{})
	run := graph.MustNewExec(b, twice)
	x := array()
	for i := range 100 {
		if _, err := run.Exec1(x); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	if limit := m.limit.Load(); limit <= 2*arrayBytes || limit > 8*arrayBytes {
		t.Errorf("limit %d of a device of %d", limit, 8*arrayBytes)
	}
	if m.collector.Stats().Cycles[policy.TriggerRefusal] == 0 {
		t.Error("no cycle of the ladder")
	}
}

func TestAnAllocatorThatWaitsIsGivenWhatItWaitsFor(t *testing.T) {
	device := newTight(t, 8*arrayBytes)
	device.wait = time.Minute
	t.Setenv(gc.PolicyVariable, "never")
	b, m := wrap(t, device, gc.Config{})
	run := graph.MustNewExec(b, twice)
	x := array()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // or Go's own cycles might come
	for begin, i := time.Now(), 0; i < 15; i++ {
		if _, err := run.Exec1(x); err != nil || time.Since(begin) > device.wait/2 {
			t.Fatalf("step %d after %v: %v", i, time.Since(begin), err)
		}
	}
	if m.collector.Stats().Cycles[policy.TriggerRefusal] == 0 {
		t.Error("no cycle")
	}
}

func TestWhatIsReachableAndDoesNotFitIsOneError(t *testing.T) {
	device := newTight(t, 4*arrayBytes)
	b, _ := wrap(t, device, gc.Config{Limit: 3 * arrayBytes})
	run := graph.MustNewExec(b, twice)
	var kept []*tensors.Tensor
	x := array()
	for range 10 {
		y, err := run.Exec1(x)
		if err == nil {
			kept = append(kept, y)
			continue
		}
		var full *OutOfMemoryError
		if !errors.As(err, &full) {
			t.Fatalf("%T: %v", err, err)
		}
		if len(kept) != 3 || full.Bytes != arrayBytes || full.Reachable != 4*arrayBytes || full.Limit != 3*arrayBytes {
			t.Errorf("with %d kept: %+v", len(kept), full)
		}
		if text := full.Error(); !strings.Contains(text, "of which 256.00 KiB reachable") || !strings.Contains(text, "RESOURCE_EXHAUSTED") {
			t.Error(text)
		}
		return
	}
	t.Fatal("ten arrays on a device of four")
}

func TestFinalizeAndDonationAreExact(t *testing.T) {
	device := newTight(t, 1<<30)
	b, m := wrap(t, device, gc.Config{Limit: 1 << 30, Policy: nil})
	run := graph.MustNewExec(b, twice)
	x := array()
	y := run.MustExec1(x)
	live(t, m, device, 2*arrayBytes)
	if err := y.FinalizeAll(); err != nil {
		t.Fatal(err)
	}
	live(t, m, device, arrayBytes)
	donated, err := graph.DonateTensorBuffer(x, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	z, err := run.Exec1(donated)
	if err != nil {
		t.Fatal(err)
	}
	live(t, m, device, arrayBytes)
	z.MustFinalizeAll()
	live(t, m, device, 0)
}

func TestABufferIsFinalizedOnce(t *testing.T) {
	device := newTight(t, 1<<30)
	b, m := wrap(t, device, gc.Config{Limit: 1 << 30})
	x, err := b.BufferFromFlatData(0, make([]float32, arrayBytes/4), array().Shape())
	if err != nil {
		t.Fatal(err)
	}
	if shape, err := b.BufferShape(x); err != nil || !shape.Equal(array().Shape()) {
		t.Error(shape, err)
	}
	if err := b.BufferFinalize(x); err != nil {
		t.Fatal(err)
	}
	live(t, m, device, 0)
	if err := b.BufferFinalize(x); err == nil {
		t.Error("twice, and simplego, which refuses that, was not asked")
	}
	live(t, m, device, 0)
	if err := b.BufferFinalize(42); err == nil {
		t.Error("42 is no buffer")
	}
}

func TestByItsName(t *testing.T) {
	for config, want := range map[string]string{"eager": "", "eager:go": "", "eager:go:ops_sequential": "", "eager:eager:go": "one eager is enough"} {
		b, err := backends.NewWithConfig(config)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", config, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		if got := graph.MustNewExec(b, twice).MustExec1([]float32{1, 2}).Value().([]float32)[1]; got != 4 {
			t.Errorf("%s: twice 2 is %v", config, got)
		}
		if eager := b.(*Backend); eager.Collector(0) != gc.Default() || !strings.HasPrefix(b.Description(), "eager") {
			t.Errorf("%s: %s: simplego's memory is the host's", config, b.Description())
		}
		b.Finalize()
	}
}

func TestTheEnvironmentSetsALimit(t *testing.T) {
	t.Setenv("EAGERGC_DEVICE0_HARD_MEMORY_LIMIT", "3MiB")
	if _, m := wrap(t, newTight(t, 1<<30), gc.Config{}); m.limit.Load() != 3<<20 {
		t.Error(m.limit.Load())
	}
	t.Setenv("EAGERGC_DEVICE0_HARD_MEMORY_LIMIT", "3 potatoes")
	if _, m := wrap(t, newTight(t, 1<<30), gc.Config{}); m.limit.Load() != 0 {
		t.Errorf("one that cannot be read: %d", m.limit.Load())
	}
}

// What the wrapper takes for a buffer that is made, and finalized by hand.
func BenchmarkBuffer(b *testing.B) {
	inner, err := backends.NewWithConfig("go")
	if err != nil {
		b.Fatal(err)
	}
	eager, m := wrap(b, inner, gc.Config{Limit: 1 << 40})
	shape := array().Shape()
	raw, _, err := inner.NewSharedBuffer(0, shape)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("donated", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			eager.track(m, raw, &shape, 0).take()
		}
	})
	b.Run("forgotten", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			eager.track(m, raw, &shape, 0).held.taken = true
		}
	})
}

// A sink keeps what it is told.
type sink struct {
	mu     sync.Mutex
	begin  time.Time
	labels map[string]uint32
	kinds  map[trace.Kind]int
}

func (s *sink) Now() time.Duration { return time.Since(s.begin) }

func (s *sink) Record(e trace.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[e.Kind]++
}

func (s *sink) Label(text string) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.labels[text]; !known {
		s.labels[text] = uint32(len(s.labels) + 1)
	}
	return s.labels[text]
}

func TestARecordingHasEveryBufferAndEveryWaitByPlace(t *testing.T) {
	s := &sink{begin: time.Now(), labels: map[string]uint32{}, kinds: map[trace.Kind]int{}}
	device := newTight(t, 1<<30)
	b, m := wrap(t, device, gc.Config{Limit: 1 << 30, Recorder: s, Policy: policy.MustParse("always").New(), Caps: gc.Caps{Cycles: 1}})
	run := graph.MustNewExec(b, twice).WithName("double")
	for range 5 {
		tensors.MustCopyFlatData[float32](run.MustExec1(array()))
	}
	for end := time.Now().Add(10 * time.Second); m.live.Load() > 0 && time.Now().Before(end); {
		m.collector.Collect(policy.TriggerExplicit)
	}
	m.collector.SetRecorder(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds[trace.Alloc] != 10 || s.kinds[trace.Free] != 10 || s.kinds[trace.Sync] != 10 {
		t.Errorf("%d made, %d freed, %d waits; want 10 of each", s.kinds[trace.Alloc], s.kinds[trace.Free], s.kinds[trace.Sync])
	}
	for site := range s.labels {
		if strings.HasPrefix(site, "github.com/eagergc/eagergc/gc.") {
			t.Errorf("the site of a buffer is gc's own: %s", site)
		}
	}
	for _, place := range []string{"gomlx: double#0", "gomlx: read"} {
		if s.labels[place] == 0 {
			t.Errorf("no wait at %q: %v", place, s.labels)
		}
	}
}
