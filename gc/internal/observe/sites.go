package observe

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A Survivor is memory of one allocation site that has outlived many cycles: see gc.Survivor.
type Survivor struct {
	Site    string // the stack, innermost first: a line for each function with its file and line
	Bytes   int64
	Samples int
	Cycles  uint64
}

// A sample is an owner whose allocation site was noted.
type sample struct {
	owner Place
	site  string
	bytes int64  // that the sample represents
	born  uint64 // number of cycles that had settled
}

// Samples are a few owners, chosen at random by their bytes, and kept while they are tracked. The zero
// value is ready to use. All methods are safe for concurrent use.
type Samples struct {
	next atomic.Int64 // gross bytes at which the next owner is chosen

	mu      sync.Mutex
	all     []sample
	every   int64 // mean of the gross bytes between the last chosen owner and the next
	checked time.Duration
	seen    map[string]int64 // bytes of a site when it was first checked or last logged
}

// On average one owner in sampleRate bytes is chosen. Go's heap profile chooses one in 512 KiB
// (runtime.MemProfileRate), but owned memory comes in larger pieces. Of large owners one in
// sampleOwners is chosen, because a stack takes 1 us, which is more than the rest of Own.
const (
	sampleRate    = 4 << 20
	sampleOwners  = 8
	samplesMax    = 4096
	manyCycles    = 16          // cycles that a survivor has outlived
	survivorCheck = time.Second // between two checks for memory to log
	muchShare     = 1.0 / 16    // of the live bytes; a site with less is not logged
)

// Due reports whether to note an owner, because gross bytes have reached the next sample.
func (s *Samples) Due(gross int64) bool { return gross >= s.next.Load() }

// Note keeps an owner as a sample, unless another goroutine has noted one since Due.
func (s *Samples) Note(owner Place, site string, bytes, gross int64, cycles uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Due(gross) {
		return
	}
	if len(s.all) < samplesMax {
		s.all = append(s.all, sample{owner, site, max(bytes, s.every), cycles})
	}
	s.every = max(sampleRate, sampleOwners*min(bytes, math.MaxInt64>>16))
	s.next.Store(gross + int64(rand.ExpFloat64()*float64(s.every)))
}

// Survivors returns the sites of samples that have outlived many cycles, the largest first. Now is
// the number of settled cycles.
func (s *Samples) Survivors(now uint64) []Survivor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.survivors(now)
}

// survivors forgets dead samples. The caller holds mu.
func (s *Samples) survivors(now uint64) []Survivor {
	s.all = slices.DeleteFunc(s.all, func(x sample) bool {
		_, alive := x.owner.In.Holds(x.owner.Slot)
		return !alive
	})
	sites := make(map[string]Survivor)
	for _, x := range s.all {
		if age := now - x.born; age >= manyCycles {
			v := sites[x.site]
			sites[x.site] = Survivor{Site: x.site, Bytes: v.Bytes + x.bytes, Samples: v.Samples + 1, Cycles: max(v.Cycles, age)}
		}
	}
	return slices.SortedFunc(maps.Values(sites), func(a, b Survivor) int { return cmp.Compare(b.Bytes, a.Bytes) })
}

// Growing returns the survivors that hold a large share of the live bytes and have doubled since they
// were first checked or last returned. Memory that stays without growing, as the weights of a model
// do, is in use. Growing checks once a second.
func (s *Samples) Growing(at time.Duration, now uint64, live int64) (list []Survivor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 || at-s.checked < survivorCheck {
		return nil
	}
	s.checked = at
	for _, v := range s.survivors(now) {
		before := s.seen[v.Site]
		if float64(v.Bytes) < muchShare*float64(live) || v.Bytes < 2*before {
			continue
		}
		if before > 0 {
			list = append(list, v)
		} else if s.seen == nil {
			s.seen = make(map[string]int64)
		}
		s.seen[v.Site] = v.Bytes
	}
	return list
}

// texts caches the texts of stacks, because making one takes microseconds.
var texts struct {
	sync.Map
	n atomic.Int64
}

// Site returns the caller's stack without functions whose names begin with inside, as a recording has
// it.
func Site(inside string) string {
	var at [32]uintptr
	n := runtime.Callers(2, at[:])
	if text, ok := texts.Load(at); ok {
		return text.(string)
	}
	if texts.n.Add(1) > 1<<16 { // bounds their memory
		return "(too many sites)"
	}
	text := pressure.SiteText(at[:n], inside)
	texts.Store(at, text)
	return text
}
