package auto

import (
	"cmp"
	"log/slog"
	"math"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A host is what a watcher reads of the system and of Go's runtime.
type host interface {
	resident() (pressure.Resident, error)
	goMemory() int64                            // mapped and not given back
	goNeeds() int64                             // what of it the last cycle has kept, with what is no heap
	goFree() (all, free int64)                  // Go's memory, and what of it the heap keeps free
	heapReady() int64                           // what of it is heap
	heapResident(address uint64) (int64, error) // what of that is resident
	limit() int64                               // of the container, the environment or the options; 0 = none
	free() (int64, error)                       // bytes of the container that nobody holds
	stalls() float64                            // share of the last 10 s in which some task waited for memory
}

// A watcher is what the import starts.
type watcher struct {
	host      host
	options   Options
	collector *gc.Collector
	gauge     *gc.Gauge
	goLimit   *goLimit
	untouched untouched
	ticker    rival
	held      heldMemory
	stuck     bool  // as the log has it
	limit     int64 // of the process; 0 = none known
	most      int64 // that was outside the Go heap lately

	libraries    atomic.Pointer[[]func() (bytes, objects int64)] // read what each counts
	deaf         func()                                          // forgets those to come
	countedLimit int64                                           // that was set last for what libraries count
	urgency      int                                             // index of prices
	freed        time.Time                                       // when Go's heap was last made to give memory back

	early     chan struct{} // for a review before it is due
	notBefore atomic.Int64  // when the next such review may be asked for, in Unix ns
	once      sync.Once
	done      chan struct{}
	ended     chan struct{}
}

// Readings of limits and stalls are made anew so often, and where Go has reached its limit.
const (
	reviewEvery = time.Second
	earlyEvery  = reviewEvery / 10
)

// Below its limit a process keeps this share of it free for what a reading does not show:
// kernel memory, page tables, and growth until the next look.
const reserve = 0.05

func start(h host, o Options, l *goLimit) (*watcher, error) {
	if _, err := h.resident(); err != nil {
		return nil, err
	}
	c, err := gc.New(gc.Config{Policy: policy.MustParse(gc.HostPolicy).New(), Log: o.Log})
	if err != nil {
		return nil, err
	}
	w := &watcher{host: h, options: o, collector: c, goLimit: l, early: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
	c.Listen()
	w.libraries.Store(new([]func() (bytes, objects int64)))
	w.deaf = pressure.Listen(func(_ string, read func() (bytes, objects int64)) func(int64, unsafe.Pointer) {
		before := *w.libraries.Load()
		all := append(before[:len(before):len(before)], read)
		w.libraries.Store(&all)
		return nil
	})
	w.gauge = gc.Watch(c, w.read)
	w.review(time.Now())
	return w, nil
}

// read is what the gauge reads: what is outside the Go heap and is not counted by libraries.
func (w *watcher) read() int64 {
	if w.goLimit.reached(w.host.goMemory()) && time.Now().UnixNano() > w.notBefore.Load() {
		w.notBefore.Store(time.Now().Add(earlyEvery).UnixNano())
		select {
		case w.early <- struct{}{}:
		default:
		}
	}
	return max(0, w.outside()-w.counted())
}

// outside is what the process holds outside the Go heap.
func (w *watcher) outside() int64 {
	r, err := w.host.resident()
	if err != nil {
		return 0
	}
	return r.Outside(w.host.goMemory() - w.untouched.of(w.host.heapReady()))
}

// counted is what libraries have counted through package pressure, which the collector has exactly. It is read at every look.
func (w *watcher) counted() (bytes int64) {
	for _, read := range *w.libraries.Load() {
		n, _ := read()
		bytes += n
	}
	return bytes
}

// stop ends it, and puts back what it has moved. Run has been called.
func (w *watcher) stop() {
	w.once.Do(func() {
		close(w.done)
		<-w.ended
		w.end()
	})
}

func (w *watcher) end() {
	w.deaf()
	w.gauge.Close()
	w.collector.Close()
	w.goLimit.giveBack()
}

func (w *watcher) run() {
	defer close(w.ended)
	tick := time.NewTicker(reviewEvery)
	defer tick.Stop()
	limit := "none"
	if w.limit > 0 {
		limit = pressure.Bytes(w.limit).String()
	}
	w.options.log().Debug("eagergc: on", slog.String("policy", w.collector.Policy()), slog.String("limit", limit))
	for {
		select {
		case <-w.done:
			return
		case <-w.early:
			w.review(time.Now())
		case now := <-tick.C:
			w.review(now)
			w.report()
		}
	}
}

// review reads limits and stalls again.
func (w *watcher) review(now time.Time) {
	w.untouched.look(w.host.heapReady(), now, w.host.heapResident)
	w.limit = w.host.limit()
	golang, outside, full, left := w.host.goMemory(), w.outside(), 0.0, int64(unlimited)
	w.most = max(outside, w.most-w.most/16)
	if w.limit > 0 {
		others := w.others(w.limit)
		full = crowd(w.limit, others, outside+golang)
		usable := int64((1-reserve)*float64(w.limit)) - others
		counted := w.counted()
		w.gauge.SetLimit(max(1, usable-golang-counted))
		w.limitCounted(counted, usable-golang-max(0, outside-counted))
		left = usable - w.most
	} else {
		w.gauge.SetLimit(0)
	}
	w.goLimit.steer(left, w.host.goNeeds(), now)
	w.price(w.host.stalls(), full)
	w.trim(now)
	w.ticker.see(w.gauge.Sample().Live, w.gauge.Allocated(), w.collector.Now())
}

// limitCounted leaves libraries what the rest does not take. Each setting has the policy asked anew, so that small changes wait.
func (w *watcher) limitCounted(counted, left int64) {
	left = max(1, left)
	if change := math.Abs(float64(left) - float64(w.countedLimit)); counted > 0 && change > 0.05*float64(w.countedLimit) {
		w.collector.SetLimit(left)
		w.countedLimit = left
	}
}

// report reads the gauge, and logs what there is to say of it.
func (w *watcher) report() {
	w.say(w.gauge.Stuck(), w.gauge.Sample().Live, w.gauge.Resting())
}

// say logs when finalizers do not run, and when cycles stop being worth it.
func (w *watcher) say(stuck bool, level int64, resting time.Duration) {
	if stuck != w.stuck {
		if w.stuck = stuck; stuck {
			w.options.log().Warn("eagergc: finalizers or cleanups that are due have not run for 10 s: one of them blocks (/debug/pprof/goroutine?debug=2 shows it under runtime.runFinalizers or runtime.runCleanups)")
		}
	}
	bytes, stayed := w.held.see(level, resting > 0)
	if bytes == 0 {
		return
	}
	w.options.log().Info("eagergc: nothing to free: memory outside the Go heap is held, or leaks",
		slog.String("held", pressure.Bytes(bytes).String()), slog.Duration("stayed", stayed), slog.Duration("next_cycle_in", resting))
	if w.options.Held != nil {
		go w.options.Held(bytes, stayed)
	}
}

// heldMemory is what no cycle brings back: so much has stayed for the last reviews. It is worth a line in the log, and another one each time that it
// has doubled, as a leak's does. Little is worth one only once that has doubled. What falls in between is work in progress.
type heldMemory struct {
	levels [int(reportAfter / reviewEvery)]int64 // at the last reviews
	n      int                                   // reviews since cycles stopped being worth it
	first  int64                                 // that had stayed so long
	said   int64
}

const (
	reportLeast = 64 << 20
	reportLeak  = 16 << 20 // if it was half as much before
	reportAfter = 10 * time.Second
)

// see is told of each review; bytes are above 0 if that is worth saying.
func (h *heldMemory) see(level int64, resting bool) (bytes int64, stayed time.Duration) {
	if !resting {
		*h = heldMemory{}
		return 0, 0
	}
	h.levels[h.n%len(h.levels)] = level
	h.n++
	least := slices.Min(h.levels[:])
	if h.n < len(h.levels) {
		return 0, 0
	}
	if h.n == len(h.levels) {
		h.first = least
	}
	if least < 2*h.said || least < reportLeast && least < max(reportLeak, 2*h.first) {
		return 0, 0
	}
	h.said = least
	return least, time.Duration(h.n) * reviewEvery
}

// system is the host that the process runs on, with the limit of the options.
type system struct{ set int64 }

func (system) resident() (pressure.Resident, error)       { return pressure.ReadResident() }
func (system) goMemory() int64                            { return pressure.GoMemory() }
func (system) heapReady() int64                           { return heapReady() }
func (system) heapResident(address uint64) (int64, error) { return residentHeap(address) }

func (system) goNeeds() int64 {
	var s [4]metrics.Sample
	for i, name := range []string{"/gc/heap/live:bytes", "/memory/classes/heap/objects:bytes", "/memory/classes/heap/free:bytes", "/memory/classes/heap/unused:bytes"} {
		s[i].Name = name
	}
	metrics.Read(s[:])
	read := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	return pressure.GoMemory() - read(1) - read(2) - read(3) + read(0)
}

func (system) goFree() (all, free int64) {
	s := [...]metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(s[:])
	return pressure.GoMemory(), int64(s[0].Value.Uint64())
}

func (s system) limit() int64 {
	total := func() int64 {
		info, _ := pressure.HostMemory() // where that is not known a share of it cannot be read
		return info.Total
	}
	if s.set > 0 {
		return min(s.set, cmp.Or(total(), s.set))
	}
	if bytes, set := pressure.EnvLimit(pressure.Host, total); set {
		return bytes
	}
	return pressure.ContainerLimit()
}

func (system) stalls() float64 {
	share, _ := pressure.HostStalls() // 0 where it is not known
	return share
}
