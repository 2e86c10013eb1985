package pool

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/eagergc/eagergc/trace"
)

// DefaultSites is a rate for [Config] that costs next to nothing, in bytes: a
// place that holds 16 GiB is estimated to within 3 % (one standard deviation),
// one that holds 256 MiB to within 25 %. Blocks well above the rate are exact. It
// adds 0.5 ns to a block of 512 B, 2 ns to one of 64 KiB and 21 ns to one of 1 MiB
// (Intel Xeon, Go 1.26.8, results/2026-11-21-sites).
const DefaultSites = 16 << 20

// A Holder is a place in the program and what it holds. Numbers are exact if
// every block is sampled, at a rate of 1, and unbiased estimates otherwise.
type Holder struct {
	Site  string // function and file:line that called the pool
	Stack string // the calls that led there, one a line, innermost first: function, a tab, file:line

	Bytes       int64 // live bytes allocated there
	Blocks      int64 // and their number
	AllocBytes  int64 // bytes allocated there so far, freed ones included
	AllocBlocks int64
}

// callers yields the next n lines of the stack, for people.
func (h Holder) callers(n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		_, rest, _ := strings.Cut(h.Stack, "\n")
		for range n {
			var line string
			if line, rest, _ = strings.Cut(rest, "\n"); line == "" || !yield(innermost(line)) {
				return
			}
		}
	}
}

// Holders returns the allocation sites that hold most live bytes, at most n,
// the largest first; a negative n means all sites ever sampled. It is empty
// unless the pool samples sites. It does not hold up the pool.
func (p *Pool) Holders(n int) []Holder {
	var list []Holder
	for _, h := range p.sites.read() {
		if h.Bytes > 0 || n < 0 {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Stack, b.Stack))
	})
	if n < 0 {
		return list
	}
	return list[:min(n, len(list))]
}

// SiteRate returns the mean number of bytes between two sampled blocks, as in
// [Config]; 0 if the pool samples none.
func (p *Pool) SiteRate() int64 { return p.sites.rate }

// sites samples allocations as Go's heap profile does (runtime.MemProfileRate):
// of all bytes handed out, one in rate is marked at random, and a block that
// holds a mark is a sample. The distance between marks is exponential, so a
// block of size bytes is a sample with probability 1-exp(-size/rate), whatever
// came before it, and stands for 1/(1-exp(-size/rate)) blocks: the formula that
// runtime/pprof (scaleHeapSample) applies to means of sizes, and this to each.
type sites struct {
	rate  int64 // bytes; 0 = off
	mu    sync.RWMutex
	index map[stack]uint32 // places in all
	all   []*site          // by the number in a header; the first stands for none
}

// A stack is what runtime.Callers gives: return addresses, innermost first,
// the pool's own among them.
type stack [stackMax]uintptr

const (
	stackMax = 32
	sitesMax = 1 << 16 // stacks, so that memory is bounded; more are one site
)

// A site is a stack that has allocated.
type site struct {
	stack        stack
	alloc, freed amount
	text         func() string // of the stack, made when it is first wanted
	label        atomic.Pointer[siteLabel]
}

// An amount is a sum of blocks. Their number is in 1/1024, as samples stand for
// fractions of blocks.
type amount struct{ bytes, blocks atomic.Int64 }

func (a *amount) add(bytes, blocks int64) {
	a.bytes.Add(bytes)
	a.blocks.Add(blocks)
}

// siteLabel is the number of a site in a recording.
type siteLabel struct {
	to *sink
	n  uint32
}

// init makes s ready for a rate, which is 0 for off.
func (s *sites) init(rate int64) {
	s.rate = rate
	s.index = map[stack]uint32{}
	s.all = []*site{nil}
}

// interval returns how many bytes there are up to the next mark.
func (s *sites) interval() int64 {
	if s.rate == 0 {
		return math.MaxInt64
	}
	return int64(min(rand.ExpFloat64()*float64(s.rate), 1<<62))
}

// weigh returns the bytes and blocks that a sample of size bytes stands for.
func (s *sites) weigh(size int64) (bytes, blocks int64) {
	w := -1 / math.Expm1(-float64(size)/float64(s.rate))
	return int64(math.Round(w * float64(size))), int64(math.Round(w * 1024))
}

// take counts a sampled block of size bytes that is being allocated, and
// returns the number of its site.
func (s *sites) take(size int64) uint32 {
	if s.rate == 0 {
		return 0
	}
	var at stack
	runtime.Callers(2, at[:])
	i := s.number(&at)
	s.at(i).alloc.add(s.weigh(size))
	return i
}

// give counts that a block of site i has been freed.
func (s *sites) give(i uint32, size int64) {
	s.at(i).freed.add(s.weigh(size))
}

func (s *sites) at(i uint32) *site {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all[i]
}

// number returns the number of a stack.
func (s *sites) number(at *stack) uint32 {
	s.mu.RLock()
	i, ok := s.index[*at]
	s.mu.RUnlock()
	if ok {
		return i
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= sitesMax {
		*at = stack{}
	}
	if i, ok = s.index[*at]; !ok {
		i = uint32(len(s.all))
		s.index[*at] = i
		s.all = append(s.all, newSite(*at))
	}
	return i
}

func newSite(at stack) *site {
	return &site{stack: at, text: sync.OnceValue(func() string { return at.text() })}
}

// read returns what each place has allocated and holds. Stacks that differ only
// inside the pool are one place.
func (s *sites) read() map[string]Holder {
	s.mu.RLock()
	all := s.all // what is in it does not change
	s.mu.RUnlock()
	sums := map[string]Holder{}
	for _, x := range all[min(1, len(all)):] {
		// Freed first: what is freed meanwhile must not make more than was allocated.
		freedBytes, freedBlocks := x.freed.bytes.Load(), x.freed.blocks.Load()
		bytes, blocks := x.alloc.bytes.Load(), x.alloc.blocks.Load()
		text := x.text()
		h := sums[text]
		h.Stack, h.Site = text, innermost(text)
		h.AllocBytes += bytes
		h.AllocBlocks += blocks
		h.Bytes += bytes - freedBytes
		h.Blocks += blocks - freedBlocks
		sums[text] = h
	}
	for text, h := range sums {
		h.Blocks, h.AllocBlocks = (h.Blocks+512)/1024, (h.AllocBlocks+512)/1024
		sums[text] = h
	}
	return sums
}

// labelIn returns the number of the text of site i in a recording, or 0.
func (s *sites) labelIn(to *sink, i uint32) uint32 {
	if i == 0 || to.labels == nil {
		return 0
	}
	x := s.at(i)
	if l := x.label.Load(); l != nil && l.to == to {
		return l.n
	}
	l := &siteLabel{to, to.labels.Label(x.text())}
	x.label.Store(l)
	return l.n
}

// markRate says in a recording how its sites are sampled.
func (s *sites) markRate(to *sink) trace.Event {
	return trace.Event{Kind: trace.Mark, Bytes: s.rate, Aux: to.labels.Label(trace.SiteRateLabel)}
}

// here returns the stack of the caller's caller.
func here() (at stack) {
	runtime.Callers(3, at[:])
	return at
}

// text returns the frames from the nearest caller outside this package on, as
// [trace.Event] labels say them.
func (at stack) text() string {
	n := slices.Index(at[:], 0)
	if n < 0 {
		n = len(at)
	}
	frames := runtime.CallersFrames(at[:n])
	var b strings.Builder
	for more := n > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		inside := strings.HasPrefix(f.Function, packagePath) && !strings.HasSuffix(f.File, "_test.go")
		if inside && b.Len() == 0 || f.Function == "runtime.goexit" || f.Function == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\t%s:%d", f.Function, f.File, f.Line)
	}
	if b.Len() == 0 {
		return "(unknown)"
	}
	return b.String()
}

var packagePath = reflect.TypeFor[Pool]().PkgPath() + "."

// site returns the place that called the pool, for people.
func (at stack) site() string { return innermost(at.text()) }

// innermost returns the first line of a stack's text, for people.
func innermost(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.Replace(line, "\t", " ", 1)
}
