package auto

import (
	"context"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/internal/verdict"
	"github.com/eagergc/eagergc/pressure"
)

// A watcher watches the process. The import starts one.
type watcher struct {
	host      host
	options   Options
	collector *gc.Collector
	gauge     *gc.Gauge
	goLimit   *goLimit
	untouched untouched
	judge     *judge
	told      string    // the last verdict that was logged
	toldAt    time.Time // when it last held
	reported  time.Time
	limit     int64     // of the process; 0 = no known limit
	most      int64     // most bytes outside the Go heap lately
	kept      int64     // bytes that C's allocator keeps free
	nextKept  time.Time // earliest time to read kept again

	libraries    atomic.Pointer[[]func() (bytes, objects int64)] // each reads the counts of a library
	deaf         func()                                          // stops listening for new libraries
	countedLimit int64                                           // last limit of the memory that libraries count
	urgency      int                                             // index in urgencies

	once  sync.Once
	done  chan struct{}
	ended chan struct{}
}

// Limits and stalls are read again every reviewEvery, and sooner once Go has reached its limit.
const (
	reviewEvery = time.Second
	earlyEvery  = reviewEvery / 10
	tellAgain   = time.Minute // after a verdict has ended, before it is news again
)

// reserve is the share of the limit that a process keeps free. It is for memory that a reading does
// not show: kernel memory, page tables, and growth until the next look.
const reserve = 0.05

// newWatcher returns a watcher whose collector is c, before its first review.
func newWatcher(h host, o Options, c *gc.Collector, l *goLimit) (*watcher, error) {
	if _, err := h.resident(); err != nil {
		return nil, err
	}
	w := &watcher{host: h, options: o, collector: c, goLimit: l, judge: newJudge(), done: make(chan struct{}), ended: make(chan struct{})}
	c.Listen()
	w.libraries.Store(new([]func() (bytes, objects int64)))
	w.deaf = pressure.Listen(func(_ string, read func() (bytes, objects int64)) func(int64, unsafe.Pointer) {
		before := *w.libraries.Load()
		all := append(before[:len(before):len(before)], read)
		w.libraries.Store(&all)
		return nil
	})
	w.gauge = gc.Watch(c, w.read)
	return w, nil
}

// read is the function of the gauge. It returns the bytes outside the Go heap that libraries do not
// count.
func (w *watcher) read() int64 {
	outside, _ := w.outside(w.host.golang())
	return max(0, outside-w.counted())
}

// outside returns the bytes that the process holds outside the Go heap, and in all.
func (w *watcher) outside(g goMemory) (outside, all int64) {
	r, err := w.host.resident()
	if err != nil {
		return 0, 0
	}
	return r.Outside(g.mapped - w.untouched.of(g.ready())), r.Anonymous
}

// counted returns the bytes that libraries have counted through package pressure. It reads them at
// every look. The collector has the same bytes exactly.
func (w *watcher) counted() (bytes int64) {
	for _, read := range *w.libraries.Load() {
		n, _ := read()
		bytes += n
	}
	return bytes
}

// stop ends the watcher, and restores the settings that it has changed. Run must have been called.
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
	verdict.Publish(verdict.Finding{})
}

func (w *watcher) run() {
	defer close(w.ended)
	limit := "none"
	if w.limit > 0 {
		limit = pressure.Bytes(w.limit).String()
	}
	w.options.log().Debug("eagergc: on", slog.String("policy", w.collector.Policy()), slog.String("limit", limit),
		slog.Any("variables", pressure.SetVariables(os.Environ())))
	timer := time.NewTimer(reviewEvery)
	defer timer.Stop()
	for {
		select {
		case <-w.done:
			return
		case now := <-timer.C:
			timer.Reset(w.step(now))
		}
	}
}

// step reviews and reports if that is due, and returns the time to the next step. While this
// package limits Go, steps are shorter, to notice sooner that Go has reached the limit.
func (w *watcher) step(now time.Time) time.Duration {
	switch due := now.Sub(w.reported) >= reviewEvery-earlyEvery/2; {
	case due:
		w.reported = now
		w.review(now)
		w.report(now)
	case w.goLimit.reached(w.host.golang().mapped):
		w.review(now)
	}
	if w.goLimit.steers() {
		return earlyEvery
	}
	return reviewEvery
}

// review reads limits and stalls again, and sets limits and the policy by them.
func (w *watcher) review(now time.Time) {
	g := w.host.golang()
	w.untouched.look(g.ready(), now, w.host.heapResident)
	w.limit = w.host.limit()
	outside, all := w.outside(g)
	full, left := 0.0, int64(unlimited)
	w.most = max(outside, w.most-w.most/16)
	if w.limit > 0 {
		others := w.others(w.limit, all)
		full = crowd(w.limit, others, outside+g.mapped)
		usable := int64((1-reserve)*float64(w.limit)) - others
		counted := w.counted()
		w.gauge.SetLimit(max(1, usable-g.mapped-counted))
		w.limitCounted(counted, usable-g.mapped-max(0, outside-counted))
		left = usable - w.most
	} else {
		w.gauge.SetLimit(0)
		if w.countedLimit > 0 {
			w.countedLimit = 0
			w.collector.SetLimit(0)
		}
	}
	w.goLimit.steer(left, g.needs(), now)
	w.price(w.host.stalls(), full)
}

// limitCounted limits the memory that libraries count to the bytes that the rest leaves. Small
// changes wait, because each setting makes the collector ask the policy again.
func (w *watcher) limitCounted(counted, left int64) {
	left = max(1, left)
	if change := math.Abs(float64(left) - float64(w.countedLimit)); counted > 0 && change > 0.05*float64(w.countedLimit) {
		w.collector.SetLimit(left)
		w.countedLimit = left
	}
}

// reading returns the state of the process for the judge.
func (w *watcher) reading(now time.Time) reading {
	g := w.host.golang()
	r := reading{Limit: w.limit, Objects: g.objects, Live: g.live, GoFree: g.free + g.unused, Cycles: g.cycles, Due: g.due, Freed: w.collector.Stats().Freed}
	r.Outside, r.Total = w.outside(g)
	r.Futile = w.gauge.Barren()
	if r.Outside >= untouchedLeast && !now.Before(w.nextKept) { // it may walk all free blocks
		begin := time.Now()
		_, w.kept = verdict.Allocator()
		w.nextKept = now.Add(untouchedShare * time.Since(begin))
	}
	r.Kept = max(0, min(w.kept, r.Outside))
	return r
}

// report judges the process. It publishes the finding for the page, metrics and Diagnose, and logs
// it if it is news.
func (w *watcher) report(now time.Time) {
	f, held, stayed := w.judge.see(w.reading(now))
	verdict.Publish(f)
	log := w.options.log()
	if f.Level == verdict.Watch || f.Level == verdict.Bad {
		if f.Verdict != w.told || now.Sub(w.toldAt) > tellAgain {
			level := map[string]slog.Level{verdict.Watch: slog.LevelInfo, verdict.Bad: slog.LevelWarn}[f.Level]
			log.Log(context.Background(), level, "eagergc: "+f.Verdict+": "+f.Reason, slog.String("next", f.Next))
		}
		w.told, w.toldAt = f.Verdict, now
	}
	if held > 0 {
		log.Info("eagergc: nothing to free: memory outside the Go heap is held, or leaks",
			slog.String("held", pressure.Bytes(held).String()), slog.Duration("stayed", stayed))
		if w.options.Held != nil {
			go w.options.Held(held, stayed)
		}
	}
}
