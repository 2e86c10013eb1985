package auto

import (
	"log/slog"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

const mib = 1 << 20

// A stage is a host that a test sets. It may be read by a gauge meanwhile.
type stage struct {
	sync.Mutex
	anonymous, container, others, touched int64
	heap                                  goMemory
	waiting                               float64
	unread, unknown, broken               error // of smaps, of the container, of what is resident
	goLimit, meanwhile                    int64 // the runtime's, and what the program sets just before this package does
}

func (s *stage) set(f func()) {
	s.Lock()
	defer s.Unlock()
	f()
}

func (s *stage) resident() (pressure.Resident, error) {
	s.Lock()
	defer s.Unlock()
	return pressure.Resident{Anonymous: s.anonymous, Mapped: 1 << 40}, s.broken
}

func (s *stage) golang() goMemory {
	s.Lock()
	defer s.Unlock()
	return s.heap
}

func (s *stage) heapResident(uint64) (int64, error) { return s.touched, s.unread }
func (s *stage) limit() int64                       { return s.container }
func (s *stage) free() (int64, error)               { return s.container - s.anonymous - s.others, s.unknown }
func (s *stage) stalls() float64                    { return s.waiting }

func (s *stage) setGoLimit(bytes int64) int64 {
	if bytes >= 0 && s.meanwhile > 0 {
		s.goLimit, s.meanwhile = s.meanwhile, 0
	}
	before := s.goLimit
	if bytes >= 0 {
		s.goLimit = bytes
	}
	return before
}

// A process is a watcher on a stage, whose clock a test moves.
type process struct {
	*stage
	collector *gc.Collector
	gauge     *gc.Gauge
	now       time.Time
	step      func() (next time.Duration)
	log       *lines
}

func newProcess(t *testing.T, s *stage, o Options) *process {
	t.Helper()
	p := &process{stage: s, now: time.Now(), log: new(lines)}
	s.goLimit = math.MaxInt64
	o.Log = slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c, err := gc.New(gc.Config{Policy: policy.MustParse(gc.HostPolicy).New(), Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWatcher(s, o, c, takeGoLimit(s.setGoLimit))
	if err != nil {
		t.Fatal(err)
	}
	w.review(time.Now())
	t.Cleanup(w.end)
	p.collector, p.gauge = w.collector, w.gauge
	p.step = func() time.Duration { return w.step(p.now) }
	return p
}

// second lets one pass.
func (p *process) second() {
	p.now = p.now.Add(time.Second)
	p.step()
}

// lines is a log.
type lines struct {
	sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

func (l *lines) list() []string {
	l.Lock()
	defer l.Unlock()
	return slices.Clone(l.all)
}
