package gc

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A Survivor is the memory given to [Own] at one allocation site that many cycles
// have not found dead: a cache, a leak, or an owner that its own release keeps alive.
type Survivor struct {
	Site    string // the stack, innermost first: a line for each function with its file and line
	Bytes   int64  // estimated from samples
	Samples int    // how many owners that rests on
	Cycles  uint64 // that the oldest of them has outlived
}

// A sample is an owner whose allocation site was noted.
type sample struct {
	in    handles
	slot  Slot
	site  string
	bytes int64  // that it stands for
	born  uint64 // cycles that had settled
}

// samples are a few of the owners, chosen at random by their bytes, and kept
// while these are tracked.
type samples struct {
	next atomic.Int64 // gross bytes at which the next owner is chosen

	mu      sync.Mutex
	all     []sample
	every   int64 // mean of the gross bytes from the last owner chosen to the next
	checked time.Duration
	seen    map[string]int64 // bytes of a site when it was first checked, or last logged
}

// On average one owner in sampleRate bytes is chosen, as Go's heap profile does
// (runtime.MemProfileRate is 512 KiB; owned memory comes in larger pieces than Go objects), and one in sampleOwners
// where owners are large: a stack takes 1 us, which is more than all else that Own does.
const (
	sampleRate    = 4 << 20
	sampleOwners  = 8
	samplesMax    = 4096
	manyCycles    = 16          // that a survivor has outlived
	survivorCheck = time.Second // between two checks for memory to log
	muchShare     = 1.0 / 16    // of the live bytes, that a site holds before it is logged
)

// choose notes an owner, if gross bytes have come to the next one.
func (s *samples) choose(in handles, slot Slot, bytes, gross int64, cycles *atomic.Uint64) {
	next, every := s.next.Load(), max(sampleRate, sampleOwners*min(bytes, math.MaxInt64>>16))
	if gross < next || !s.next.CompareAndSwap(next, gross+int64(rand.ExpFloat64()*float64(every))) {
		return
	}
	at := siteOf()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) < samplesMax {
		s.all = append(s.all, sample{in, slot, at, max(bytes, s.every), cycles.Load()})
	}
	s.every = every
}

// survivors forgets the samples that are dead, and returns the sites of those
// that have outlived many cycles, the largest first.
func (s *samples) survivors(now uint64) []Survivor {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(x sample) bool { return !x.in.has(x.slot) })
	bySite := make(map[string]*Survivor)
	for _, x := range s.all {
		age := now - x.born
		if age < manyCycles {
			continue
		}
		v := bySite[x.site]
		if v == nil {
			v = &Survivor{Site: x.site}
			bySite[x.site] = v
		}
		v.Bytes += x.bytes
		v.Samples++
		v.Cycles = max(v.Cycles, age)
	}
	var list []Survivor
	for _, v := range bySite {
		list = append(list, *v)
	}
	slices.SortFunc(list, func(a, b Survivor) int { return int(max(-1, min(1, b.Bytes-a.Bytes))) })
	return list
}

func (c *Collector) survivors() []Survivor { return c.samples.survivors(c.settled.Load()) }

// logSurvivors warns of sites that hold much, that cycles do not free, and that hold twice what they held when they
// were first checked, or last logged. What only stays, as the weights of a model do, is in use. The caller holds no lock.
func (c *Collector) logSurvivors() {
	s, now := &c.samples, c.Now()
	s.mu.Lock()
	due := len(s.all) > 0 && now-s.checked >= survivorCheck
	if due {
		s.checked = now
	}
	s.mu.Unlock()
	if !due {
		return
	}
	live := c.own().live.Load()
	for _, v := range c.survivors() {
		if float64(v.Bytes) < muchShare*float64(live) || !s.grown(v) {
			continue
		}
		c.say(logEntry{slog.LevelWarn, logSurvives, []slog.Attr{
			slog.String("site", pressure.SiteLine(v.Site)), slog.String("held", pressure.Bytes(v.Bytes).String()), slog.Uint64("cycles", v.Cycles),
		}, true})
	}
}

func (s *samples) grown(v Survivor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.seen[v.Site]
	if before > 0 && v.Bytes < 2*before {
		return false
	}
	if s.seen == nil {
		s.seen = make(map[string]int64)
	}
	s.seen[v.Site] = v.Bytes
	return before > 0
}

// A stack is what runtime.Callers gives: return addresses, innermost first.
type stack [32]uintptr

// texts are the texts of stacks, which take microseconds to make.
var texts struct {
	sync.Map
	n atomic.Int64
}

const maxTexts = 1 << 16 // so that memory is bounded

// siteOf returns the stack outside of this package, as a recording has it.
func siteOf() string {
	var at stack
	n := runtime.Callers(2, at[:])
	if text, ok := texts.Load(at); ok {
		return text.(string)
	}
	if texts.n.Add(1) > maxTexts {
		return "(too many sites)"
	}
	text := pressure.SiteText(at[:n], packagePath)
	texts.Store(at, text)
	return text
}

var packagePath = reflect.TypeFor[Collector]().PkgPath() + "."
