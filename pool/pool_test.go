package pool_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

const kib, mib = 1 << 10, 1 << 20

// TestMain fails if the tests leave goroutines behind. The fuzzer itself leaves one, which waits for signals.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	fuzzed := flag.Lookup("test.fuzz").Value.String() != ""
	for end := time.Now().Add(time.Minute); code == 0 && !fuzzed && runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			fmt.Fprintf(os.Stderr, "%d goroutines before the tests, %d after:\n", before, runtime.NumGoroutine())
			pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			code = 1
		}
	}
	os.Exit(code)
}

// waitFor polls cond: what a cycle found dead is given back by other goroutines.
func waitFor(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute: %s is not so", what)
		}
	}
}

// open returns a pool that is closed at the end of the test, and then has nothing.
func open(t testing.TB, cfg pool.Config) *pool.Pool {
	t.Helper()
	p, err := pool.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		pooltest.Check(t, p)
		waitFor(t, "nothing is left behind", func() bool { s := p.Stats(); return s.Live == 0 && s.Reserved == 0 })
	})
	return p
}

func alloc(t testing.TB, p *pool.Pool, bytes int64) pool.Block {
	t.Helper()
	b, err := p.Alloc(bytes, 0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// never returns a collector that runs no cycle of its own accord.
func never(t testing.TB) *gc.Collector {
	t.Helper()
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func hard(bytes int64) pressure.Limits {
	return pressure.Limits{Hard: pressure.Limit{Bytes: bytes}}
}

func panicked(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}

// A device is memory that the pool must not address, of so many bytes for all pools over it.
type device struct {
	pool.Host
	total int64

	mu   sync.Mutex
	used int64
	lost error // what its calls return, but for Allocate
}

func newDevice(total int64) *device { return &device{total: total} }

func (d *device) Allocate(bytes int64, stream uint32) (uintptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bytes > d.total-d.used {
		return 0, errors.New("the device is full")
	}
	d.used += bytes
	return d.Host.Allocate(bytes, stream)
}

func (d *device) Release(addr uintptr, bytes int64, stream uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used -= bytes
	return d.Host.Release(addr, bytes, stream)
}

func (d *device) Info() (pressure.Info, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return pressure.Info{Free: d.total - d.used, Total: d.total}, d.lost
}

func (d *device) Synchronize() error { return d.lost }

func at(addr uintptr, n int64) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n)
}

// A sharer is memory of a device that other upstreams use, too.
type sharer struct {
	*device
	space pressure.Space
}

func (s sharer) Shares() pressure.Space { return s.space }

// A chunked upstream is a Mapper whose ranges have memory all the time: TestReference holds the pool to where it has the right to it.
type chunked struct {
	*device
	granule int64
	ranges  *sync.Map // bytes of memory, by the address
}

func newChunked(total, granule int64) chunked {
	return chunked{newDevice(total), granule, new(sync.Map)}
}

const rangeBytes = 256 * mib

func (c chunked) Granule() int64 {
	if c.granule == 13 {
		panic("no granule")
	}
	return c.granule
}

func (c chunked) Range(chunk int64, stream uint32) (uintptr, int64, error) {
	base, err := c.Host.Allocate(rangeBytes+chunk, stream)
	addr := (base + uintptr(chunk) - 1) &^ uintptr(chunk-1)
	c.ranges.Store(addr, pool.Span{Addr: base, Bytes: rangeBytes + chunk})
	return addr, rangeBytes, err
}

func (c chunked) FreeRange(addr uintptr) error {
	s, ok := c.ranges.LoadAndDelete(addr)
	if !ok {
		return fmt.Errorf("no range at %#x", addr)
	}
	return c.Host.Release(s.(pool.Span).Addr, s.(pool.Span).Bytes, 0)
}

func (c chunked) Map(to, from []pool.Span, _ uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := int64(0)
	for _, s := range to {
		fresh += s.Bytes
	}
	for _, s := range from {
		fresh -= s.Bytes
	}
	if fresh < 0 || fresh > c.total-c.used {
		return fmt.Errorf("%d bytes more of %d", fresh, c.total-c.used)
	}
	c.used += fresh
	return nil
}

func (c chunked) Unmap(s pool.Span) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used -= s.Bytes
	return nil
}

// TestHost and its like: pools of each kind keep every promise of the package.
func TestHost(t *testing.T)   { conform(t, pool.Config{}) }
func TestDirect(t *testing.T) { conform(t, pool.Config{Direct: true}) }
func TestSites(t *testing.T)  { conform(t, pool.Config{Sites: 1}) }

func TestDevice(t *testing.T) {
	d := newDevice(1 << 40)
	if conform(t, pool.Config{Upstream: d, Space: pressure.Managed}); d.used != 0 {
		t.Errorf("%d bytes are left on the device", d.used)
	}
}

func TestMapper(t *testing.T) {
	c := newChunked(1<<40, 64*kib)
	conform(t, pool.Config{Upstream: c})
	if c.ranges.Range(func(any, any) bool { t.Error("a range is left"); return false }); c.used != 0 {
		t.Errorf("%d bytes are left", c.used)
	}
}

func conform(t *testing.T, cfg pool.Config) {
	pooltest.Run(t, func(t testing.TB, limits pressure.Limits) *pool.Pool {
		t.Helper()
		if cfg.Direct && limits.Soft != (pressure.Limit{}) {
			t.Skip("nothing is cached")
		}
		c := cfg
		c.Limits, c.Warn = limits, pooltest.Warn(t)
		p, err := pool.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return p
	})
}

func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// together runs do on n goroutines at once. Wait returns when all have ended.
func together(n int, do func(k int)) (wait func()) {
	var all sync.WaitGroup
	for k := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			do(k)
		}()
	}
	return all.Wait
}
