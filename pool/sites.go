package pool

import (
	"cmp"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/eagergc/eagergc/pressure"
)

// DefaultSites is a value in bytes for [Config].Sites that costs little: it adds less than 5 ns to
// an allocation of up to 1 MiB (results/2026-11-21-sites). The estimate for a site that holds 16
// GiB has a standard deviation of 9 %. For a site that holds 2 GiB it is 25 %. Blocks much larger
// than the value are counted exactly. For a pool of a few GiB choose less. With 16 MiB the errors
// are a third of these, and an allocation of 1 MiB pays 21 ns.
const DefaultSites = 128 << 20

// SitesByLimit as [Config].Sites picks a 512th of the hard limit that the pool begins with, at
// least 64 KiB and at most DefaultSites. Without a limit it picks DefaultSites. The estimate for a
// site that holds a tenth of the limit then has a standard deviation of 14 %.
const SitesByLimit = -1

const (
	siteSamples = 512 // of a full pool
	leastSites  = 64 << 10
)

// startSites begins to sample, once the limits are known.
func (p *Pool) startSites() {
	rate := p.cfg.Sites
	if rate == SitesByLimit {
		rate = DefaultSites
		if hard := p.group.hard.Load(); hard > 0 {
			rate = min(rate, max(leastSites, hard/siteSamples))
		}
	}
	p.sites.init(rate)
	for k := range p.caches.all {
		p.caches.all[k].unsampled = p.sites.interval()
	}
}

// sites samples allocations as Go's heap profile does (runtime.MemProfileRate). Of all bytes handed
// out, one in rate is drawn at random. A block that holds such a byte is a sample. The distance
// between them has an exponential distribution, so a block of size bytes is a sample with
// probability 1-exp(-size/rate), whatever came before it. It stands for 1/(1-exp(-size/rate))
// blocks. runtime/pprof (scaleHeapSample) applies that formula to means of sizes, this package to
// each size.
type sites struct {
	rate  int64 // bytes; 0 = off
	mu    sync.RWMutex
	index map[stack]uint32 // where in all a stack is
	all   []*site          // a header has the index of its site; index 0 is no site
}

// A stack holds the return addresses that runtime.Callers gives, innermost first, with those inside
// the pool.
type stack [stackMax]uintptr

const (
	stackMax = 32
	sitesMax = 1 << 16 // stacks, so that memory is bounded; all others share one site
)

// A site is a stack that has allocated.
type site struct {
	stack  stack
	bytes  atomic.Int64 // live
	blocks atomic.Int64 // live, times 1024, because a sample stands for a fraction of a block
	label  atomic.Pointer[siteLabel]
}

// add counts n sampled blocks of size bytes; n is -1 where one is freed.
func (s *sites) add(i uint32, n, size int64) {
	weight := float64(n) / -math.Expm1(-float64(size)/float64(s.rate))
	x := s.at(i)
	x.bytes.Add(int64(math.Round(weight * float64(size))))
	x.blocks.Add(int64(math.Round(weight * 1024)))
}

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

// interval returns how many bytes there are up to the next one that is drawn.
func (s *sites) interval() int64 {
	if s.rate == 0 {
		return math.MaxInt64
	}
	return int64(min(rand.ExpFloat64()*float64(s.rate), 1<<62))
}

// take counts a sampled block of size bytes that is being allocated, and returns the number of its
// site.
func (s *sites) take(size int64) uint32 {
	if s.rate == 0 {
		return 0
	}
	var at stack
	runtime.Callers(2, at[:])
	i := s.number(&at)
	s.add(i, 1, size)
	return i
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
	if len(s.all) >= sitesMax-1 {
		*at = stack{}
	}
	if i, ok = s.index[*at]; !ok {
		i = uint32(len(s.all))
		s.index[*at] = i
		s.all = append(s.all, &site{stack: *at})
	}
	return i
}

// labelIn returns the number of the text of site i in a recording, or 0.
func (s *sites) labelIn(to *sink, i uint32) uint32 {
	if i == 0 {
		return 0
	}
	x := s.at(i)
	if l := x.label.Load(); l != nil && l.to == to {
		return l.n
	}
	l := &siteLabel{to, to.Label(x.stack.text())}
	x.label.Store(l)
	return l.n
}

// A Holder is an allocation site and the memory that it holds. The numbers are exact if every block
// is sampled ([Config].Sites is 1). Otherwise they are estimates without bias.
type Holder struct {
	Site  string // function and file:line that called the pool
	Stack string // the calls that led there, one a line, innermost first: function, a tab, file:line

	Bytes  int64 // live bytes allocated there
	Blocks int64 // number of live blocks allocated there
}

// Holders returns the n allocation sites that hold most live bytes, the largest first. It returns
// nothing if the pool samples no sites. It does not hold up the pool.
func (p *Pool) Holders(n int) []Holder {
	var list []Holder
	for _, h := range p.sites.read() {
		if h.Bytes > 0 {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Stack, b.Stack))
	})
	return list[:min(n, len(list))]
}

// read returns a Holder for each allocation site, by its text. Stacks that differ only inside the
// pool are one site.
func (s *sites) read() map[string]Holder {
	s.mu.RLock()
	all := s.all // its entries do not change
	s.mu.RUnlock()
	sums := map[string]Holder{}
	for _, x := range all[1:] {
		text := x.stack.text()
		h := sums[text]
		h.Stack, h.Site = text, pressure.SiteLine(text)
		h.Bytes += x.bytes.Load()
		h.Blocks += x.blocks.Load()
		sums[text] = h
	}
	for text, h := range sums {
		h.Blocks = (h.Blocks + 512) / 1024
		sums[text] = h
	}
	return sums
}

// text returns the frames of the stack, one a line, as the labels of a [trace.Event] have them. It
// begins with the innermost caller outside this package and package array.
func (at stack) text() string {
	n := slices.Index(at[:], 0)
	if n < 0 {
		n = len(at)
	}
	if n == 0 {
		return "(too many sites)"
	}
	text := pressure.SiteText(at[:n], packagePath)
	for strings.HasPrefix(text, arrays) { // whose caller is the site
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

var (
	packagePath = reflect.TypeFor[Pool]().PkgPath() + "."
	arrays      = reflect.TypeFor[Pool]().PkgPath() + "/array."
)
