package pool

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool/internal/guard"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Tables of what goes in and what comes out, and of what each field of a configuration does.

const kib, mib = 1 << 10, 1 << 20

// plainUp is an upstream of addresses alone, with an answer to Info.
type plainUp struct {
	info pressure.Info
	err  error
}

func (u *plainUp) Allocate(bytes int64, _ uint32) (uintptr, error) {
	u.info.Free -= bytes
	return 1<<40 + uintptr(u.info.Total-u.info.Free)<<10, nil
}
func (u *plainUp) Release(_ uintptr, bytes int64, _ uint32) error { u.info.Free += bytes; return nil }
func (u *plainUp) Info() (pressure.Info, error)                   { return u.info, u.err }

func upOf(total int64) *plainUp { return &plainUp{info: pressure.Info{Free: total, Total: total}} }

type fenceOnly struct{ *plainUp }

func (fenceOnly) Fence(uint32) (Fence, error) { return nil, nil }

// A granular upstream could map memory in granules of that size.
type granular struct {
	*plainUp
	granule int64
}

func (g granular) Granule() int64 {
	if g.granule == 13 {
		panic("no granule")
	}
	return g.granule
}
func (granular) Range(int64, uint32) (uintptr, int64, error) { return 0, 0, errors.New("no range") }
func (granular) FreeRange(uintptr) error                     { return nil }
func (granular) Map(_, _ []Span, _ uint32) error             { return nil }
func (granular) Unmap(Span) error                            { return nil }

func percent(x float64) pressure.Limit { return pressure.Limit{Percent: x} }

func bytesOf(n int64) pressure.Limit { return pressure.Limit{Bytes: n} }

// TestConfigurationsThatAreRefused, and those beside them that are not.
func TestConfigurationsThatAreRefused(t *testing.T) {
	mute := &plainUp{err: errors.New("it does not say")}
	for _, c := range []struct {
		cfg  Config
		want string // in the error; none: it is taken
	}{
		{Config{Sites: SitesByLimit - 1}, "Sites is -2 bytes: want 0 to 70368744177664, or SitesByLimit"},
		{Config{Sites: MaxBytes + 1}, "Sites is 70368744177665 bytes"},
		{Config{Sites: MaxBytes}, ""},
		{Config{Sites: SitesByLimit}, ""},
		{Config{Upstream: fenceOnly{upOf(mib)}}, "is a Fencer but no Synchronizer"},
		{Config{Poison: true, Space: pressure.Device(1)}, "not that of device1"},
		{Config{Poison: true, Space: pressure.Pinned}, ""},
		{Config{Limits: pressure.Limits{Hard: bytesOf(-1)}}, "limit of -1 bytes or 0 %"},
		{Config{Limits: pressure.Limits{Soft: bytesOf(-2)}}, "limit of -2 bytes"},
		{Config{Limits: pressure.Limits{Soft: percent(101)}}, "or 101 %"},
		{Config{Limits: pressure.Limits{Hard: percent(-1)}}, "or -1 %"},
		{Config{Limits: pressure.Limits{Hard: percent(math.NaN())}}, "or NaN %"},
		{Config{Upstream: upOf(1000), Limits: pressure.Limits{Hard: percent(100)}}, ""},
		{Config{Upstream: mute, Limits: pressure.Limits{Hard: percent(50)}}, "a limit in percent needs the total of the space: it does not say"},
		{Config{Upstream: mute, Limits: pressure.Limits{Soft: percent(50)}}, "needs the total"},
		{Config{Upstream: mute, Limits: pressure.Limits{Soft: bytesOf(mib)}}, ""},
		{Config{Upstream: upOf(0), Limits: pressure.Limits{Hard: percent(50)}}, "pool: "},
		{Config{Direct: true, Limits: pressure.Limits{Soft: bytesOf(mib)}}, "a pool that is Direct caches nothing"},
		{Config{Upstream: granular{upOf(mib), 256}}, "granule of 256 bytes: want a power of two, 512 or more"},
		{Config{Upstream: granular{upOf(mib), 1536}}, "granule of 1536 bytes"},
		{Config{Upstream: granular{upOf(mib), 512}}, ""},
		{Config{Upstream: granular{upOf(mib), 13}}, "contained panic: no granule"},
		{Config{Upstream: granular{upOf(mib), 256}, Direct: true}, ""},
		{Config{Upstream: granular{upOf(mib), 1024}, Chunk: 512}, "chunks of 512 bytes: want a power of two, 1024 or more"},
		{Config{Upstream: granular{upOf(mib), 1024}, Chunk: 3072}, "chunks of 3072 bytes"},
		{Config{Upstream: granular{upOf(mib), 1024}, Chunk: 1024}, ""},
	} {
		p, err := New(c.cfg)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
		if err == nil {
			p.Close()
		}
	}
}

// TestChunksFollowTheLimit that the pool begins with, or what there is.
func TestChunksFollowTheLimit(t *testing.T) {
	limits := func(soft, hard int64) pressure.Limits {
		return pressure.Limits{Soft: bytesOf(soft), Hard: bytesOf(hard)}
	}
	for _, c := range []struct {
		total, granule int64
		limits         pressure.Limits
		chunk          int64 // 0: nothing is mapped
	}{
		{1 << 30, 64 * kib, limits(0, 0), 4 * mib},
		{1<<30 - 1, 64 * kib, limits(0, 0), 2 * mib},
		{1 << 30, 64 * kib, limits(0, 64*mib), 256 * kib},
		{1 << 30, 64 * kib, limits(32*mib, 64*mib), 128 * kib},
		{1 << 30, 64 * kib, limits(128*mib, 64*mib), 256 * kib},
		{1 << 30, 64 * kib, limits(128*mib, 0), 512 * kib},
		{1 << 40, 2 * mib, limits(0, 0), 128 * mib},
		{1 << 44, 256 * mib, limits(0, 0), 256 * mib},
		{1 << 30, 2 * mib, limits(0, 32*mib), 2 * mib},
		{1 << 30, 2 * mib, limits(0, 32*mib-1), 0},
		{mib, 2 * mib, limits(0, 0), 2 * mib}, // the device says what it likes
		{1 << 30, 0, limits(0, 0), 0},
	} {
		p := newPool(t, Config{Upstream: granular{upOf(c.total), c.granule}, Limits: c.limits})
		if p.core.chunk != c.chunk || (p.mapper != nil) != (c.chunk > 0) {
			t.Errorf("%+v: chunks of %d bytes", c, p.core.chunk)
		}
	}
}

// TestSegmentSizes by hand: the roomy one, the one of whole 2 MiB, the tight one.
func TestSegmentSizes(t *testing.T) {
	const many, few = 0, 1280*mib - 1
	for _, c := range []struct {
		size, hard int64
		want       [3]int64
	}{
		{512, many, [3]int64{2 * mib, 2 * mib, 64 * kib}},
		{64*kib + 512, few, [3]int64{2 * mib, 2 * mib, 128 * kib}},
		{mib, many, [3]int64{2 * mib, 2 * mib, mib}},
		{mib + 512, many, [3]int64{40 * mib, 2 * mib, mib + 64*kib}}, // 39 blocks
		{2 * mib, many, [3]int64{20 * mib, 2 * mib, 2 * mib}},
		{3 * mib, many, [3]int64{24 * mib, 4 * mib, 3 * mib}}, // eight, and nothing is lost
		{3 * mib, few, [3]int64{12 * mib, 4 * mib, 3 * mib}},
		{3 * mib, few + 1, [3]int64{24 * mib, 4 * mib, 3 * mib}},
		{7 * mib, many, [3]int64{28 * mib, 8 * mib, 7 * mib}},
		{10*mib - 512, many, [3]int64{30 * mib, 10 * mib, 10 * mib}},
		{10 * mib, many, [3]int64{10 * mib, 10 * mib, 10 * mib}},
		{11*mib + 512, many, [3]int64{12 * mib, 12 * mib, 11*mib + 64*kib}},
	} {
		if got := segmentSizes(c.size, c.hard); got != c.want {
			t.Errorf("%d under %d: %v, want %v", c.size, c.hard, got, c.want)
		}
	}
}

// TestRateOfSites: a 512th of the limit that a pool begins with, between bounds, or what was asked for.
func TestRateOfSites(t *testing.T) {
	for _, c := range []struct{ sites, hard, want int64 }{
		{0, mib, 0}, {1, mib, 1}, {777, mib, 777}, {SitesByLimit, 0, 128 * mib}, {SitesByLimit, mib, 64 * kib}, {SitesByLimit, 64 * mib, 128 * kib},
		{SitesByLimit, 1 << 36, 128 * mib}, {SitesByLimit, 1<<36 + 1<<20, 128 * mib}, {SitesByLimit, 1 << 35, 64 * mib},
	} {
		p := newPool(t, Config{Upstream: upOf(1 << 40), Sites: c.sites, Limits: pressure.Limits{Hard: bytesOf(c.hard)}})
		if got := p.SiteRate(); got != c.want {
			t.Errorf("Sites %d under %d: a rate of %d, want %d", c.sites, c.hard, got, c.want)
		}
	}
	if p := newPool(t, Config{Poison: true, Sites: 777}); p.SiteRate() != 1 {
		t.Error("Poison does not note every site")
	}
	for _, c := range []struct{ rate, size, bytes, blocks int64 }{
		{1, 512, 512, 1024}, {512, 512, 810, 1620}, {1024, 512, 1301, 2602}, {512, 1024, 1184, 1184}, {1 << 20, 512, 1048832, 2097664},
	} {
		if bytes, blocks := (&sites{rate: c.rate}).weigh(c.size); bytes != c.bytes || blocks != c.blocks {
			t.Errorf("a sample of %d at %d stands for %d bytes in %d/1024 blocks, want %d in %d", c.size, c.rate, bytes, blocks, c.bytes, c.blocks)
		}
	}
}

// TestAnInterval between samples is the rate on average, and for ever where it is 0.
func TestAnInterval(t *testing.T) {
	if n := (&sites{}).interval(); n != math.MaxInt64 {
		t.Errorf("off: after %d bytes", n)
	}
	s, sum, longer := sites{rate: 1000}, 0.0, 0
	for range 100_000 {
		n := s.interval()
		if sum += float64(n); n > 1000 {
			longer++
		}
	}
	if mean := sum / 100_000; mean < 970 || mean > 1030 || longer < 35_800 || longer > 37_800 { // exponential: 1/e of them are longer; ten deviations
		t.Errorf("the mean is %v, %d of 100,000 are longer", mean, longer)
	}
}

//go:noinline
func whereAmI(p *Pool) (b Block, want []string) {
	var at [64]uintptr
	frames := runtime.CallersFrames(at[:runtime.Callers(1, at[:])])
	for {
		f, more := frames.Next()
		want = append(want, fmt.Sprintf("%s\t%s:", f.Function, f.File))
		if !more {
			break
		}
	}
	b, _ = p.Alloc(1000, 0)
	return b, want
}

// TestStacksAreWhole: from the caller of the pool up to the first function of the goroutine.
func TestStacksAreWhole(t *testing.T) {
	for _, cfg := range []Config{{Sites: 1}, {Poison: true}} {
		p := newPool(t, cfg)
		b, want := whereAmI(p)
		h := p.Holders(1)
		lines := strings.Split(strings.TrimSuffix(h[0].Stack, "\n"), "\n")
		if len(lines) < 3 || h[0].Bytes < 1024 || h[0].Blocks != 1 || !strings.Contains(h[0].Site, "whereAmI") {
			t.Errorf("held by %+v", h)
		}
		for k, line := range lines {
			if name, _, _ := strings.Cut(line, "\t"); k >= len(want) || !strings.HasPrefix(want[k], name+"\t") {
				t.Errorf("frame %d is %q, want %q", k, line, want)
			}
		}
		p.Free(b)
	}
}

// TestHoldersAreInOrder: those that hold most first, then by their stacks; no more than asked for, and none that hold nothing, unless all are.
func TestHoldersAreInOrder(t *testing.T) {
	var p Pool
	p.sites.init(1)
	for k := range 4 {
		x := p.sites.at(p.sites.number(&stack{uintptr(k + 1)}))
		x.once.Do(func() { x.words = string(rune('d'-k)) + "\tfile:1" })
		x.alloc.add([]int64{300, 500, 300, 700}[k], 1024*int64(k+1))
		x.freed.add([]int64{0, 0, 0, 700}[k], []int64{0, 0, 0, 4096}[k])
	}
	names := func(list []Holder) (text string) {
		for _, h := range list {
			text += h.Stack[:1]
		}
		return text
	}
	if a, b, c, d := names(p.Holders(10)), names(p.Holders(2)), names(p.Holders(-1)), names(p.Holders(0)); a != "cbd" || b != "cb" || c != "cbda" || d != "" {
		t.Errorf("%q, %q, %q, %q", a, b, c, d)
	}
	all := p.Holders(-1)
	if h := all[3]; h.Bytes != 0 || h.Blocks != 0 || h.AllocBytes != 700 || h.AllocBlocks != 4 {
		t.Errorf("freed: %+v", h)
	}
	if h := all[0]; h.Bytes != 500 || h.Blocks != 2 || h.AllocBytes != 500 || h.AllocBlocks != 2 {
		t.Errorf("live: %+v", h)
	}
}

func TestFragmentation(t *testing.T) {
	for _, c := range []struct {
		cached, largest int64
		want            float64
	}{{0, 0, 0}, {-5, 0, 0}, {100, 100, 0}, {100, 25, 0.75}, {1, 0, 1}} {
		if got := (Stats{Cached: c.cached, Largest: c.largest}).Fragmentation(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestNamesOfSteps(t *testing.T) {
	text := ""
	for s := StepReap; s <= StepDrop+1; s++ {
		text += " " + s.String()
	}
	if text != " reap purge wait synchronize collect drop unknown" {
		t.Error(text)
	}
}

// TestTexts: the whole text of what people read.
func TestTexts(t *testing.T) {
	cause := errors.New("the device is full")
	oom := &OutOfMemoryError{
		Bytes: 3 * mib, Sample: pressure.Sample{Space: pressure.Pinned, Live: 5 * mib, Reserved: 6 * mib, Limit: 7 * mib}, Report: "a report\n", Err: cause,
		Steps:   []Climb{{Step: StepPurge, Duration: 1500 * time.Nanosecond, Freed: 1024, Released: 2048}, {Step: StepDrop, Err: errors.New("it broke")}},
		Holders: []Holder{{Site: "main.f f.go:1", Stack: "main.f\tf.go:1\nmain.g\tg.go:2\nmain.h\th.go:3\nmain.i\ti.go:4", Bytes: 4 * mib, Blocks: 9}},
	}
	m := Measurement{Elapsed: 1500 * time.Microsecond, Allocs: 3, Bytes: mib, Frees: 2, Net: 2048, Peak: 4096, Cycles: 7, Collector: 2 * time.Millisecond,
		Held: 3 * time.Millisecond, Refusals: 5, Ladder: 4 * time.Millisecond}
	line := "pool: out of pinned memory: 3.00 MiB wanted, 5.00 MiB live, 6.00 MiB reserved, limit 7.00 MiB"
	for _, c := range []struct{ got, want string }{
		{oom.Error(), line + ": the device is full"},
		{(&OutOfMemoryError{Bytes: 512}).Error(), "pool: out of host memory: 512 B wanted, 0 B live, 0 B reserved, limit none"},
		{oom.Detail(), line + `: the device is full
  purge              2µs  freed 1.00 KiB, released 2.00 KiB
  drop                0s  freed 0 B, released 0 B, failed: it broke
a report
What to try: https://github.com/eagergc/eagergc/blob/main/pool/OUTOFMEMORY.md
  4.00 MiB in 9 blocks from main.f f.go:1
    called from main.g g.go:2
    called from main.h h.go:3
`},
		{(&LiveError{Space: pressure.Managed, Bytes: mib, Blocks: 3}).Error(), "pool: managed pool closed with 1.00 MiB live in 3 blocks"},
		{(&LiveError{Bytes: mib, Blocks: 3, By: oom.Holders}).Error(), "pool: host pool closed with 1.00 MiB live in 3 blocks; 4.00 MiB in 9 blocks from main.f f.go:1"},
		{m.String(), "1.5ms (3 allocations: 1.00 MiB, 2 given back, net 2.00 KiB, peak 4.00 KiB; 7 cycles: 2ms, held 3ms; 5 refusals: 4ms)"},
	} {
		if c.got != c.want {
			t.Errorf("got\n%s\nwant\n%s", c.got, c.want)
		}
	}
	if !errors.Is(oom, ErrOutOfMemory) || !errors.Is(oom, cause) {
		t.Error("neither the kind nor the cause is found in it")
	}
}

// TestGuard: a panic is an error that says what and where.
func TestGuard(t *testing.T) {
	if n, err := guard.Value(func() (int, error) { return 7, ErrSize }); n != 7 || err != ErrSize {
		t.Errorf("%d, %v", n, err)
	}
	err := guard.Error(func() error { panic("broken") })
	if err == nil || !strings.HasPrefix(err.Error(), "pool: contained panic: broken\n") || !strings.Contains(err.Error(), "tables_test.go") {
		t.Error(err)
	}
	if guard.Error(func() error { return nil }) != nil || guard.Error(func() error { return ErrSize }) != ErrSize {
		t.Error("another error than that of the call")
	}
}

// TestHeaders: numbers are found, those that are wrong are not, and each group of 64 is a permutation with neighbours two apart.
func TestHeaders(t *testing.T) {
	var hs headers
	seen := map[uint32]bool{}
	for n := uint32(1); n <= 20_000; n++ {
		i := hs.new()
		if seen[i] || i == 0 || i/64 != n/64 {
			t.Fatalf("header %d has the number %d", n, i)
		}
		seen[i] = true
		hs.at(i).size = int64(i)
		if k := n % 64; k != 0 && k != 32 && i-spread(n-1) != 2 {
			t.Fatalf("headers %d and %d lie %d apart", n-1, n, i-spread(n-1))
		}
	}
	for i := range seen {
		if hs.find(i) != hs.at(i) || hs.at(i).size != int64(i) {
			t.Fatalf("header %d is not found, or another's", i)
		}
	}
	for _, i := range []uint32{0, 1 << 15, 1 << 31, math.MaxUint32} {
		if hs.find(i) != nil {
			t.Errorf("header %d is found", i)
		}
	}
	hs.at(5).gen.Store(8)
	hs.drop(5)
	hs.drop(9)
	if a, b := hs.new(), hs.new(); a != 9 || b != 5 || hs.at(5).gen.Load() != 8 || hs.at(5).size != 0 {
		t.Errorf("used again: %d and %d, generation %d", a, b, hs.at(5).gen.Load())
	}
}

// TestNumberSet against a map.
func TestNumberSet(t *testing.T) {
	s, want := newNumberSet(130), map[uint32]bool{}
	for k := range uint32(130) {
		if k%3 == 0 {
			s.add(k)
			want[k] = true
		}
		if k%2 == 0 {
			s.remove(k / 2)
			delete(want, k/2)
		}
	}
	var got []uint32
	for k := range s.all {
		if got = append(got, k); !want[k] || !s.has(k) {
			t.Errorf("%d is in it", k)
		}
	}
	if len(got) != len(want) || s.has(129) != want[129] || s.has(1) || !slices.IsSorted(got) {
		t.Errorf("%v, want %v", got, want)
	}
	for range s.all {
		break
	}
}

// TestUse: what no block of the pool is, is not noted; the last stream has no note of its own.
func TestUse(t *testing.T) {
	p := newPool(t, Config{Upstream: upOf(mib)})
	b, _ := p.Alloc(1, 3)
	used := func() uint32 { return p.core.headers.at(uint32(b.ref)).used.Load() }
	for _, c := range []struct {
		b      Block
		stream uint32
		want   uint32
	}{
		{Block{}, 7, 0}, {Block{ref: 1 << 31}, 7, 0}, {Block{ref: b.ref + 1<<32}, 7, 0}, {b, 3, 0}, {b, 7, 8}, {b, 7, 8}, {b, 9, manyStreams}, {b, 7, manyStreams},
	} {
		if p.Use(c.b, c.stream); used() != c.want {
			t.Errorf("stream %d: noted %d, want %d", c.stream, used(), c.want)
		}
	}
	p.Free(b)
	if b, _ = p.Alloc(1, 3); used() != 0 {
		t.Errorf("a new block is used by %d", used())
	}
	if p.Use(b, math.MaxUint32); used() != manyStreams {
		t.Errorf("the last stream: noted %d", used())
	}
	p.Free(b)
}

// TestStealing: a cache takes a piece of another one, and half of what that has left, as far as it has room.
func TestStealing(t *testing.T) {
	p := newPool(t, Config{Upstream: upOf(1 << 40)})
	f, g, h := &p.caches[0], &p.caches[1], &p.caches[2]
	fill := func(c *cache, n int) {
		c.flush(&p.core)
		for range n {
			i := p.core.take(4096, 1)
			if i == 0 {
				p.tracker.Reserve(2*mib, 0)
				i = p.core.addSegment(uintptr(len(c.magazines)+int(p.core.headers.used))<<30, 2*mib, 4096, 1)
			}
			c.push(&p.core.headers, i)
		}
		p.stock(c)
	}
	steal := func(c *cache, size int64, stream uint32) bool {
		i := p.steal(c, size, stream)
		if i != 0 {
			p.retire(i)
		}
		return i != 0
	}
	n := func(c *cache) int { return int(c.magazines[slotOf(4096, 1)].n) }
	for _, c := range []struct {
		has, keep, left, got int
	}{{1, 64, 0, 0}, {2, 64, 1, 0}, {9, 64, 4, 4}, {64, 64, 32, 31}, {64, 5, 58, 5}} {
		fill(f, 0)
		fill(g, c.has)
		f.keep = int64(c.keep) * 4096
		if f.from = 1; !steal(f, 4096, 1) || n(g) != c.left || n(f) != c.got || f.cached != int64(c.got)*4096 || f.from != 1 {
			t.Errorf("%+v: %d are left, %d were moved, %d bytes, from %d", c, n(g), n(f), f.cached, f.from)
		}
		f.keep = keepMax
	}
	fill(f, 0)
	fill(g, 0)
	fill(h, 3)
	if f.from = 1; steal(f, 8192, 1) || steal(f, 4096, 2) {
		t.Error("a piece of another size or stream")
	}
	if p.stocked.has(1) || g.stocked || !p.stocked.has(2) {
		t.Error("a cache that has nothing is looked at again, or one that has is not")
	}
	if !steal(f, 4096, 1) || f.from != 2 || !f.stocked || !p.stocked.has(0) {
		t.Errorf("the search ended at %d", f.from)
	}
	other := int64(4096 + 512)
	for slotOf(other, 1) != slotOf(4096, 1) {
		other += 512
	}
	p.tracker.Reserve(20*mib, 0)
	i := p.core.addSegment(1<<50, 20*mib, other, 1)
	f.flush(&p.core)
	f.push(&p.core.headers, i) // where those of 4096 bytes would lie
	fill(h, 9)
	if f.from = 2; !steal(f, 4096, 1) || n(f) != 1 || f.cached != other || n(h) != 8 {
		t.Errorf("beside a piece of %d bytes: %d in the magazine, %d bytes, %d left", other, n(f), f.cached, n(h))
	}
	h.mu.Lock()
	if f.flush(&p.core); steal(f, 4096, 1) {
		t.Error("a cache that is in use was searched")
	}
	h.mu.Unlock()
}

// TestCachesSettleWhenTheyAreNotUsed: a cache that no goroutine has used between two samples holds nothing ready.
func TestCachesSettleWhenTheyAreNotUsed(t *testing.T) {
	p := newPool(t, Config{Upstream: upOf(1 << 40)})
	b, _ := p.Alloc(4096, 0)
	active := func() (n int) {
		for range p.active.all {
			n++
		}
		return n
	}
	if active() == 0 || p.tracker.Live() == 4096 {
		t.Errorf("%d caches are active, %d bytes counted", active(), p.tracker.Live())
	}
	if s := p.Sample(); s.Live != 4096 || active() == 0 {
		t.Errorf("%+v, %d active", s, active())
	}
	if s := p.Sample(); s.Live != 4096 || active() != 0 || p.tracker.Live() != 4096 || p.Allocated() != 4096 {
		t.Errorf("%+v, %d active, %d counted", s, active(), p.tracker.Live())
	}
	p.Free(b)
	if s := p.Sample(); s.Live != 0 {
		t.Errorf("%+v", s)
	}
}

// TestStrayBytes by hand.
func TestStrayBytes(t *testing.T) {
	for _, c := range []struct {
		bytes string
		want  int
	}{{"", -1}, {"a", -1}, {"b", 0}, {"aaaa", -1}, {"baaa", 0}, {"abaa", 1}, {"aaab", 3}, {"abbb", 1}, {"bbbb", 0}, {"aaba", 2}} {
		if got := strayByte([]byte(c.bytes), 'a'); got != c.want {
			t.Errorf("%q: %d, want %d", c.bytes, got, c.want)
		}
	}
	for _, n := range []int{0, 1, 2, 4095, 4096, 4097, 20_000} {
		b := make([]byte, n+1)
		if fill(b[:n], 7); strayByte(b[:n], 7) >= 0 || b[n] != 0 {
			t.Errorf("%d bytes are not filled, or more are", n)
		}
	}
}

// TestPoisonFindsEachStrayByte, in front of a block, behind it, and in what is free; and says where.
func TestPoisonFindsEachStrayByte(t *testing.T) {
	p, err := New(Config{Poison: true}) // not newPool: what it counted before it panicked stays counted
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b, err := p.Alloc(1000, 0)
	if err != nil || b.Addr%512 != 0 {
		t.Fatal(b, err)
	}
	write := func(at int, v byte) *byte {
		x := &memory(b.Addr-guardBytes, 3*quantum+512)[guardBytes+at]
		*x = v
		return x
	}
	for _, at := range []int{-512, -1, 1000, 1023, 1024, 1535} {
		x := write(at, 1)
		text := panicked(func() { p.Free(b) })
		if want := fmt.Sprintf("pool: write outside a block of 1000 B: at byte %d; allocated at github.com/eagergc/eagergc/pool.", at); !strings.HasPrefix(text, want) || !strings.Contains(text, "freed at github.com/eagergc/eagergc/pool.") {
			t.Errorf("at byte %d: %q, want %q", at, text, want)
		}
		*x = guardPattern
		p.core.headers.at(uint32(b.ref)).gen.Add(^uint32(0)) // the block was being freed
	}
	p.Free(b)
	for _, at := range []int{-512, 0, 999, 1535} {
		x := write(at, 9)
		text := panicked(func() { p.Alloc(1000, 0) })
		if want := fmt.Sprintf("pool: write after free: byte %#x is 0x9; the block there was allocated at github.com/eagergc/eagergc/pool.", b.Addr+uintptr(at)); !strings.HasPrefix(text, want) {
			t.Errorf("at byte %d: %q, want %q", at, text, want)
		}
		*x = freePattern
		p.flush()
		p.FreeAllBlocks()
		if b, err = p.Alloc(1000, 0); err != nil {
			t.Fatal(err)
		}
		p.Free(b)
	}
}

func panicked(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return ""
}

// TestBadFrees: each says which it is.
func TestBadFrees(t *testing.T) {
	p := newPool(t, Config{Upstream: upOf(1 << 30)})
	b, _ := p.Alloc(1, 0)
	moved, future := b, b
	moved.Addr++
	future.ref += 2 << 32
	stranger, never := b, Block{Addr: 512, ref: 1 << 31}
	stranger.ref -= 1 << 32 // a generation that was never handed out
	for name, c := range map[string]struct {
		Block
		want string
	}{"moved": {moved, "not of this pool"}, "later": {future, "not of this pool"}, "never": {stranger, "not of this pool"}, "number": {never, "not of this pool"}} {
		if text := panicked(func() { p.Free(c.Block) }); !strings.Contains(text, c.want) {
			t.Errorf("%s: %q", name, text)
		}
	}
	p.Free(b)
	if text, want := panicked(func() { p.Free(b) }), fmt.Sprintf("pool: double free, or a block of another pool: 1 B at %#x (block %#x)", b.Addr, b.ref); text != want {
		t.Errorf("%q, want %q", text, want)
	}
	if s := p.Stats(); s.Live != 0 || s.Frees != 1 {
		t.Errorf("%+v", s)
	}
}

// TestMemoryOfBlocks: of the length that was asked for, and none where there is no block.
func TestMemoryOfBlocks(t *testing.T) {
	p := newPool(t, Config{})
	b, _ := p.Alloc(1000, 0)
	if m := p.Memory(b); len(m) != 1000 || &m[0] != &memory(b.Addr, 1)[0] || p.Memory(Block{Addr: b.Addr, Bytes: 1}) != nil {
		t.Errorf("%d bytes", len(m))
	}
	p.Free(b)
	if p.Upstream() != (Host{}) || p.Space() != pressure.Host {
		t.Error("the zero configuration is not host memory")
	}
	if q := newPool(t, Config{Upstream: upOf(mib), Space: pressure.Pinned}); q.Space() != pressure.Pinned || q.Upstream() == (Host{}) {
		t.Error("another space or upstream than was given")
	}
	if _, err := (Host{}).Allocate(1<<62, 0); err == nil || !strings.Contains(err.Error(), "pool: mmap of ") {
		t.Error(err)
	}
	if err := (Host{}).Release(b.Addr+1, 512, 0); err == nil || !strings.Contains(err.Error(), "pool: munmap of 512 B: ") {
		t.Error(err)
	}
}

// TestWarnMayPanic: there is nobody else to tell. Nor need there be anybody.
func TestWarnMayPanic(t *testing.T) {
	for _, warn := range []func(error){nil, func(error) { panic("who warns the warner") }} {
		p, err := New(Config{Upstream: upOf(mib), Warn: warn})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := p.Alloc(1, 0)
		p.Close() // warns
		p.Free(b)
	}
}

// TestTheCollectorsEventsGoWhereThePoolsGo, if the pool has made it; one that was given is left alone.
func TestTheCollectorsEventsGoWhereThePoolsGo(t *testing.T) {
	cycles := func(e *events) (n int) {
		for _, x := range e.Events {
			if x.Kind == trace.Cycle {
				n++
			}
		}
		return n
	}
	first, second := new(events), new(events)
	p := newPool(t, Config{Trace: first})
	k, err := p.collector()
	if err != nil {
		t.Fatal(err)
	}
	k.c.Collect(policy.TriggerExplicit)
	p.SetTrace(second)
	k.c.Collect(policy.TriggerExplicit)
	k.c.Collect(policy.TriggerExplicit)
	p.SetTrace(nil)
	k.c.Collect(policy.TriggerExplicit)
	if a, b := cycles(first), cycles(second); a == 0 || b <= a || !k.private {
		t.Errorf("%d and %d cycles were recorded, want one and two", a, b)
	}
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	third := new(events)
	q := newPool(t, Config{Collector: c, Trace: third})
	if k, err := q.collector(); err != nil || k.c != c || k.private {
		t.Errorf("another collector than was given: %v", err)
	}
	if c.Collect(policy.TriggerExplicit); cycles(third) != 0 {
		t.Error("the events of a collector that was given")
	}
	q.Close()
	p.Close()
	if (p.collected() == gc.Stats{}) || (newPool(t, Config{}).collected() != gc.Stats{}) {
		t.Error("the counts of a pool's collector, which has run cycles, or of none")
	}
	closed := newPool(t, Config{})
	closed.Close()
	if _, err := closed.collector(); err != ErrClosed {
		t.Errorf("a collector for a closed pool: %v", err)
	}
}

// TestRetryClimbs: all that is cached, then a step before each further call, until it fits or fails otherwise.
func TestRetryClimbs(t *testing.T) {
	other := errors.New("other")
	for fits := range 10 {
		u := upOf(1 << 40)
		p := newPool(t, Config{Upstream: u})
		var seen []string
		cancel := p.Register(purges{func(what string) { seen = append(seen, what) }})
		b, _ := p.Alloc(mib, 0)
		p.Free(b)
		calls := 0
		err := p.Retry(func() error {
			if calls++; calls > 1 && u.info.Free != u.info.Total {
				t.Error("memory is still cached")
			}
			seen = append(seen, "try")
			switch {
			case calls <= fits:
				return fmt.Errorf("driver: %w", ErrOutOfMemory)
			case fits == 3:
				return other
			}
			return nil
		})
		want := strings.Fields("try try try purge try try try try drop try") // before each: the cache, reap, purge, wait, synchronize, collect, drop
		n := 0
		for k, x := range want {
			if x == "try" {
				n++
			}
			if n == fits+1 {
				want = want[:k+1]
				break
			}
		}
		if !slices.Equal(seen, want) {
			t.Errorf("fits after %d: %v, want %v", fits, seen, want)
		}
		if wantErr := map[bool]error{true: ErrOutOfMemory}[fits > 7]; fits != 3 && !errors.Is(err, wantErr) || fits == 3 && err != other {
			t.Errorf("fits after %d: %v", fits, err)
		}
		cancel()
		cancel()
		if p.Reclaim(StepDrop); len(seen) != len(want) {
			t.Error("one that was cancelled is asked")
		}
	}
}

type purges struct{ say func(string) }

func (p purges) Purge() { p.say("purge") }
func (p purges) Drop()  { p.say("drop") }

// TestTrimIdleWantsATime.
func TestTrimIdleWantsATime(t *testing.T) {
	p := newPool(t, Config{Upstream: upOf(mib)})
	for _, d := range []time.Duration{0, -time.Second} {
		if text := panicked(func() { p.TrimIdle(d) }); !strings.Contains(text, "want a time above 0") {
			t.Errorf("%v: %q", d, text)
		}
	}
}

// TestWhatAGroupAddsUp: live of those that are open, reserved of all, allocated from the start.
func TestWhatAGroupAddsUp(t *testing.T) {
	u := upOf(1 << 30)
	cfg := Config{Upstream: u, Space: pressure.Device(3), Limits: pressure.Limits{Hard: bytesOf(64 * mib)}}
	p, q := newPool(t, cfg), newPool(t, cfg)
	a, _ := p.Alloc(3*mib, 0)
	b, _ := q.Alloc(4096, 0)
	if p.group != q.group || p.group.Allocated() != 3*mib+4096 {
		t.Errorf("allocated %d", p.group.Allocated())
	}
	want := pressure.Sample{Space: pressure.Device(3), Live: 3*mib + 4096, Reserved: p.Stats().Reserved + q.Stats().Reserved, Limit: 64 * mib}
	if s := p.group.Sample(); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	q.Close()
	want.Live = 3 * mib
	if s := p.group.Sample(); s != want || p.group.Allocated() != 3*mib+4096 {
		t.Errorf("one is closed: %+v, want %+v; %d allocated", s, want, p.group.Allocated())
	}
	q.Free(b)
	p.Free(a)
	alone := newPool(t, Config{Upstream: u})
	if alone.group == p.group || newPool(t, Config{Upstream: u}).group == alone.group {
		t.Error("pools of host memory share a group")
	}
}

// TestGatesAreShared by the pools of a group at one collector, and closed with the last.
func TestGatesAreShared(t *testing.T) {
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cfg := Config{Upstream: upOf(1 << 30), Space: pressure.Device(4), Collector: c}
	p, q := newPool(t, cfg), newPool(t, cfg)
	g := p.group
	if p.collect.Load().gate != q.collect.Load().gate || g.gates[c].pools != 2 || !slices.Equal(g.collectors(q), []*gc.Collector{c}) {
		t.Error("two gates for one group")
	}
	if p.Close(); g.gates[c] == nil || g.gates[c].pools != 1 {
		t.Error("the gate closed before the last pool")
	}
	if q.Close(); len(g.gates) != 0 {
		t.Error("the gate stays")
	}
}

// TestOwnedBytesAreThoseThatTheCollectorKnows.
func TestOwnedBytesAreThoseThatTheCollectorKnows(t *testing.T) {
	p := newPool(t, Config{})
	b, _ := p.Alloc(1000, 0)
	owner := new([4]*int)
	o, err := Own(p, owner, b)
	if err != nil || p.collect.Load().owners.Len() != 1 {
		t.Fatal(err)
	}
	if o.Free(); p.collect.Load().owners.Len() != 0 || p.Stats().Live != 0 {
		t.Error("it was not given back")
	}
	runtime.KeepAlive(owner)
}

// atDepth allocates: each depth is a stack of its own.
//
//go:noinline
func atDepth(p *Pool, depth int, bytes int64) (b Block) {
	if depth > 0 {
		return atDepth(p, depth-1, bytes)
	}
	b, _ = p.Alloc(bytes, 0)
	return b
}

// TestTenHoldersAreNamed: the largest ten, where memory is out and where a pool is closed.
func TestTenHoldersAreNamed(t *testing.T) {
	var warned []error
	p := newPool(t, Config{Upstream: upOf(1 << 30), Sites: 1, Limits: pressure.Limits{Hard: bytesOf(mib)}, Warn: func(err error) { warned = append(warned, err) }})
	var all []Block
	for k := range 12 {
		all = append(all, atDepth(p, k, int64(k+1)*512))
	}
	_, err := p.Alloc(2*mib, 0)
	var oom *OutOfMemoryError
	var live *LiveError
	p.Close()
	if !errors.As(err, &oom) || len(warned) != 1 || !errors.As(warned[0], &live) {
		t.Fatal(err, warned)
	}
	for _, list := range [][]Holder{oom.Holders, live.By} {
		if len(list) != 10 || list[0].Bytes != 12*512 || list[9].Bytes != 3*512 || list[9].Blocks != 1 {
			t.Errorf("%+v", list)
		}
	}
	if live.Bytes != 78*512 || live.Blocks != 12 || live.Space != pressure.Host {
		t.Errorf("%+v", live)
	}
	for _, b := range all {
		p.Free(b)
	}
}

// onDevice shares the memory of a device.
type onDevice struct {
	*plainUp
	space pressure.Space
}

func (u onDevice) Shares() pressure.Space { return u.space }

type byValue struct{ Host }

func (byValue) Info() (pressure.Info, error) { return pressure.Info{Free: mib, Total: mib}, nil }

// TestWhoSharesMemory: upstreams that say so, by the space they name, or one upstream that is a pointer to what lies on a device. The limits of the environment
// are those of that space.
func TestWhoSharesMemory(t *testing.T) {
	t.Setenv("EAGERGC_DEVICE9_HARD_MEMORY_LIMIT", "5MiB")
	u, v := upOf(1<<30), upOf(1<<20)
	pools := map[string]*Pool{}
	for name, cfg := range map[string]Config{
		"a": {Upstream: u, Space: pressure.Device(9)}, "a2": {Upstream: u, Space: pressure.Device(9)}, "b": {Upstream: v, Space: pressure.Device(9)},
		"host": {Upstream: u}, "value": {Upstream: byValue{}, Space: pressure.Device(9)}, "value2": {Upstream: byValue{}, Space: pressure.Device(9)},
		"c": {Upstream: onDevice{u, pressure.Device(9)}, Space: pressure.Managed}, "c2": {Upstream: onDevice{v, pressure.Device(9)}, Space: pressure.Device(9)},
		"d": {Upstream: onDevice{u, pressure.Device(8)}, Space: pressure.Device(9)},
	} {
		pools[name] = newPool(t, cfg)
	}
	for a, p := range pools {
		for b, q := range pools {
			if want := a == b || a[:1] == b[:1] && len(a) <= 2 && len(b) <= 2; (p.group == q.group) != want {
				t.Errorf("%s and %s share: %v", a, b, !want)
			}
		}
		want := int64(5 * mib)
		if a == "host" || a == "d" {
			want = 0
		}
		if _, hard := p.Limits(); hard != want {
			t.Errorf("%s has a limit of %d", a, hard)
		}
	}
	if s := pools["c"].group.Sample(); s.Space != pressure.Device(9) {
		t.Errorf("%+v", s)
	}
}

// TestTheGroupAsksWhoIsOpen for what is free: the oldest, and once that is closed the next.
func TestTheGroupAsksWhoIsOpen(t *testing.T) {
	first := newPool(t, Config{Upstream: onDevice{upOf(1000 * mib), pressure.Device(11)}})
	second := newPool(t, Config{Upstream: onDevice{upOf(500 * mib), pressure.Device(11)}})
	if n := second.Sample().Limit; n != 1000*mib {
		t.Errorf("the budget is %d, want that which the oldest says", n)
	}
	first.Close()
	if n := second.Sample().Limit; n != 500*mib {
		t.Errorf("the budget is %d, want that which the one says that is left", n)
	}
}

// TestGroupsAreForgotten once nobody has a pool of theirs.
func TestGroupsAreForgotten(t *testing.T) {
	known := func() bool {
		groups.mu.Lock()
		defer groups.mu.Unlock()
		_, known := groups.byKey[pressure.Device(12)]
		return known
	}
	func() {
		p, err := New(Config{Upstream: onDevice{upOf(mib), pressure.Device(12)}})
		if err != nil || !known() {
			t.Fatal(err)
		}
		forgetGroup(pressure.Device(12)) // as if that of one before came late
		if p.Close(); !known() {
			t.Error("a group that is in use was forgotten")
		}
	}()
	for end := time.Now().Add(time.Minute); known() && time.Now().Before(end); {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if known() {
		t.Error("the group stays")
	}
}

// thief takes what a cycle has freed, before the one who waits for it can, and gives it back at the second Purge.
type thief struct {
	*plainUp
	stolen int64
	steals bool
	keeps  bool // what it has stolen, for ever
	purges int
}

func (u *thief) Allocate(bytes int64, stream uint32) (uintptr, error) {
	if bytes+u.stolen > u.info.Free {
		return 0, errors.New("full")
	}
	return u.plainUp.Allocate(bytes, stream)
}

func (u *thief) Release(addr uintptr, bytes int64, stream uint32) error {
	if u.steals {
		u.stolen += bytes
	}
	return u.plainUp.Release(addr, bytes, stream)
}

func (u *thief) Purge() {
	if u.purges++; u.purges == 2 && !u.keeps {
		u.stolen, u.steals = 0, false
	}
}
func (u *thief) Drop() {}

// leave leaves a block to the collector, whose owner nobody has.
//
//go:noinline
func leave(t *testing.T, p *Pool, bytes int64) {
	b, err := p.Alloc(bytes, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Own(p, new([4]*int), b); err != nil {
		t.Fatal(err)
	}
}

// TestASecondRound: if cycles have found as much as is wanted and another took it, the ladder is climbed again; if they found less, in
// the first round or in the second, it is not.
func TestASecondRound(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // no cycle but those of the ladder
	for _, c := range []struct {
		garbage, wanted int64
		keeps           bool
		rounds          int
	}{{4 * mib, 4 * mib, false, 2}, {3 * mib, 4 * mib, false, 1}, {4 * mib, 4 * mib, true, 2}} {
		u := &thief{plainUp: upOf(4 * mib), keeps: c.keeps}
		p := newPool(t, Config{Upstream: u, Direct: true})
		p.Register(u)
		leave(t, p, c.garbage)
		u.steals = true
		b, err := p.Alloc(c.wanted, 0)
		if u.purges != c.rounds || (err == nil) != (c.rounds == 2 && !c.keeps) {
			t.Errorf("%+v: %d rounds, %v", c, u.purges, err)
		}
		if err == nil {
			p.Free(b)
		} else if oom := new(OutOfMemoryError); !errors.As(err, &oom) || len(oom.Steps) != c.rounds*int(steps) {
			t.Errorf("%+v: %v", c, err)
		}
		u.stolen, u.steals = 0, false
	}
}

// TestCloseCollectsWhatIsLeftToIt, and nothing if nothing is.
func TestCloseCollectsWhatIsLeftToIt(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // no cycle but that one
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cycles := func() (n uint64) { return c.Stats().Cycles[policy.TriggerExplicit] }
	for _, owned := range []bool{false, true} {
		p := newPool(t, Config{Upstream: upOf(1 << 30), Collector: c})
		if owned {
			leave(t, p, mib)
		}
		before := cycles()
		if p.Close(); (cycles() > before) != owned {
			t.Errorf("owned %v: %d cycles", owned, cycles()-before)
		}
		for end := time.Now().Add(time.Minute); p.Stats().Reserved > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
	}
}
