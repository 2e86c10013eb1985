package auto

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// A host is what a watcher reads of the system and of Go's runtime.
type host interface {
	resident() (pressure.Resident, error)
	goMemory() int64
	limit() (int64, error)     // of the container or the environment; 0 = none
	free() (int64, error)      // bytes of the container that nobody holds
	stalls() float64           // share of the last 10 s in which some task waited for memory
	goLimit(bytes int64) int64 // as debug.SetMemoryLimit
}

// A watcher is what the import starts.
type watcher struct {
	host      host
	collector *gc.Collector
	gauge     *gc.Gauge
	steers    bool  // nobody else has set GOMEMLIMIT
	limit     int64 // of the process; 0 = none known
	goLimit   int64 // that was set last

	countedLimit int64         // that was set last for what libraries count
	urgency      int           // index of prices
	said         time.Duration // to the next cycle, in the last line of the log
	profiles     profiles
	trimmed      time.Time // when C's allocator was last made to give memory back

	announced chan struct{} // closed once the log has been told of the start
	once      sync.Once
	done      chan struct{}
}

// Readings of limits and stalls are made anew so often.
const reviewEvery = time.Second

// Below its limit a process keeps this share of it free for what a reading does not show:
// kernel memory, page tables, and growth until the next look.
const reserve = 0.05

func start(h host) (*watcher, error) {
	if _, err := h.resident(); err != nil {
		return nil, err
	}
	c, err := gc.New(gc.Config{Policy: gc.MustParse(gc.HostPolicy).New()})
	if err != nil {
		return nil, err
	}
	w := &watcher{host: h, collector: c, announced: make(chan struct{}), done: make(chan struct{}), profiles: profiles{folder: os.Getenv(profilesVariable)}}
	w.steers = h.goLimit(-1) == math.MaxInt64
	w.goLimit = math.MaxInt64
	c.Listen()
	w.gauge = gc.Watch(c, func() int64 { return max(0, w.outside()-w.counted()) })
	w.review()
	return w, nil
}

// outside is what the process holds outside the Go heap. The gauge reads what of it libraries do not count.
func (w *watcher) outside() int64 {
	r, err := w.host.resident()
	if err != nil {
		return 0
	}
	return r.Outside(w.host.goMemory())
}

// counted is what libraries have counted through package pressure: the collector has it exactly.
func (w *watcher) counted() (bytes int64) {
	for _, n := range w.collector.Counters() {
		bytes += n.Live
	}
	return bytes
}

func (w *watcher) stop() {
	w.once.Do(func() {
		close(w.done)
		w.gauge.Close()
		w.collector.Close()
	})
}

func (w *watcher) run() {
	tick := time.NewTicker(reviewEvery)
	defer tick.Stop()
	slog.Info("eagergc: on", slog.String("policy", w.collector.Policy()), slog.Int64("limit_bytes", w.limit))
	close(w.announced)
	for {
		select {
		case <-w.done:
			return
		case <-tick.C:
			w.review()
			w.report()
		}
	}
}

// review reads limits and stalls again.
func (w *watcher) review() {
	limit, err := w.host.limit()
	if err != nil {
		limit = 0 // no control groups here: the price is enough
	}
	w.limit = limit
	outside, full := w.outside(), 0.0
	if limit > 0 {
		others := w.others(limit)
		full = crowd(limit, others, outside+w.host.goMemory())
		usable := int64((1-reserve)*float64(limit)) - others
		counted := w.counted()
		w.gauge.SetLimit(max(1, usable-w.host.goMemory()-counted))
		w.limitCounted(counted, usable-w.host.goMemory()-max(0, outside-counted))
		w.steer(usable - outside)
	} else {
		w.gauge.SetLimit(0)
		w.steer(math.MaxInt64)
	}
	w.price(w.host.stalls(), full)
	w.trim(outside, time.Now())
}

// limitCounted leaves libraries what the rest does not take. Each setting has the policy asked anew, so that small changes wait.
func (w *watcher) limitCounted(counted, left int64) {
	left = max(1, left)
	if change := math.Abs(float64(left) - float64(w.countedLimit)); counted > 0 && change > 0.05*float64(w.countedLimit) {
		w.collector.SetLimit(left)
		w.countedLimit = left
	}
}

// steer gives the runtime what is left, but always room to work: a limit below what is
// alive makes Go collect without end. Each setting stops the world, so that small changes wait.
func (w *watcher) steer(left int64) {
	if !w.steers {
		return
	}
	if left < math.MaxInt64 {
		left = max(left, w.host.goMemory()+w.host.goMemory()/4)
	}
	if change := math.Abs(float64(left) - float64(w.goLimit)); change > 0.05*float64(w.goLimit) {
		w.host.goLimit(left)
		w.goLimit = left
	}
}

// So many bytes that have stayed so long are worth a line in a log: what falls in between is work in progress.
const (
	reportLeast = 64 << 20
	reportAfter = 10 * time.Second
)

// report logs when cycles stop being worth it, and again when the time to the next one has grown.
func (w *watcher) report() {
	bytes, stayed := w.gauge.Held()
	resting := w.gauge.Resting()
	if !w.worthSaying(bytes, stayed, resting) {
		return
	}
	slog.Info("eagergc: nothing to free: memory outside the Go heap is held, or leaks",
		slog.Int64("bytes", bytes), slog.Duration("stayed", stayed), slog.Duration("next_cycle_in", resting))
	w.profiles.write()
}

func (w *watcher) worthSaying(bytes int64, stayed, resting time.Duration) bool {
	if resting == 0 {
		w.said = 0
	}
	if resting <= w.said || bytes < reportLeast || stayed < reportAfter {
		return false
	}
	w.said = resting
	return true
}

// system is the host that the process runs on.
type system struct{}

func (system) resident() (pressure.Resident, error) { return pressure.ReadResident() }
func (system) goMemory() int64                      { return pressure.GoMemory() }
func (system) goLimit(bytes int64) int64            { return debug.SetMemoryLimit(bytes) }

func (system) limit() (int64, error) {
	limits, err := pressure.LimitsFromEnv(pressure.Host, nil)
	if err != nil || limits.Hard == (pressure.Limit{}) {
		return pressure.ContainerLimit(), err
	}
	info, err := pressure.HostMemory()
	if err != nil {
		return limits.Hard.Bytes, nil
	}
	set, err := limits.Hard.Of(info.Total)
	return min(set, info.Total), err
}

func (system) stalls() float64 {
	s, err := pressure.HostStalls()
	if err != nil {
		return 0
	}
	return s.Some.Avg10
}
