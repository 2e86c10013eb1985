package auto

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A plain is what the comments of this package say that a review does, written once more, without its state in many places.
type plain struct {
	bytes, ready, most, counted, ours int64
	next, set                         time.Time // of the look at mappings; when Go's limit was set
	urgency                           int
	gauge                             int64
}

func (p *plain) review(s *stage, library int64, now time.Time) {
	anonymous, golang, ready, container := s.anonymous.Load(), s.golang.Load(), s.ready.Load(), s.container.Load()

	// Mappings: every 5 s, where the heap has moved by an eighth or much is untouched.
	switch moved := math.Abs(float64(ready - p.ready)); {
	case ready < 64*mib:
		p.bytes, p.ready = 0, 0
	case now.Before(p.next) || int64(moved) < p.ready/8 && p.bytes < 32*mib:
	default:
		p.bytes, p.ready, p.next = max(0, ready-s.touched), ready, now.Add(5*time.Second)
		if s.unread != nil {
			p.bytes = 0
		}
	}
	untouched := max(0, p.bytes-max(0, p.ready-ready))
	outside := max(0, anonymous-golang+untouched)
	p.most = max(outside, p.most-p.most/16)

	left, full := int64(math.MaxInt64-1), 0.0
	p.gauge = 0
	if container > 0 {
		others := max(0, s.others)
		if s.unknown != nil || s.broken.Load() != nil {
			others = 0
		}
		if float64(others) >= 0.05*float64(container) {
			full = float64(others+outside+golang) / float64(container)
		}
		usable := int64(0.95*float64(container)) - others
		p.gauge = max(1, usable-golang-library)
		if rest := max(1, usable-golang-max(0, outside-library)); library > 0 && math.Abs(float64(rest-p.counted)) > 0.05*float64(p.counted) {
			p.counted = rest
		}
		left = usable - p.most
	}

	// Go's limit: what is left, or none where Go needs nearly all of it.
	room := 1.1
	if p.ours == math.MaxInt64-1 {
		room = 1.25
	}
	if float64(left) < room*float64(s.needs) {
		left = math.MaxInt64 - 1
	}
	change := float64(left-p.ours) / float64(p.ours)
	if hurry := left == math.MaxInt64-1 || change <= -0.25; math.Abs(change) >= 0.125 && (hurry || now.Sub(p.set) >= 10*time.Second) {
		p.ours, p.set = left, now
	}

	// The price: up at once, down where both are well below.
	for p.urgency < 2 && (s.waiting >= []float64{0, 0.02, 0.2}[p.urgency+1] || full >= []float64{0, 0.75, 0.9}[p.urgency+1]) {
		p.urgency++
	}
	for p.urgency > 0 && s.waiting < []float64{0, 0.005, 0.05}[p.urgency] && full < []float64{0, 0.65, 0.8}[p.urgency] {
		p.urgency--
	}
}

// TestReviewAgainstThePlainRules: whatever a process, its neighbours and its container do, each review sets what the rules say.
func TestReviewAgainstThePlainRules(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	lib := pressure.NewCounter(t.Name())
	library := int64(0)
	defer func() { lib.Sub(library) }()
	s := newStage()
	s.anonymous.Store(100 * mib)
	w := begun(t, s)
	w.gauge.Close() // it looks no more, but has its limit
	p := &plain{ours: unlimited}
	now := time.Now()
	p.review(s, 0, now) // as the start has
	p.next = w.untouched.next
	amount := func(most int64) int64 { return r.Int64N(most) >> r.IntN(4) * mib }
	for step := range 3000 {
		now = now.Add([]time.Duration{time.Second, time.Second, 4 * time.Second, 6 * time.Second, time.Hour}[r.IntN(5)])
		switch r.IntN(8) {
		case 0:
			s.container.Store([]int64{0, 1000, 1100, 4000, 100}[r.IntN(5)] * mib)
		case 1:
			s.anonymous.Store(amount(1000))
		case 2:
			s.golang.Store(amount(600))
			s.needs = s.golang.Load() / (1 + r.Int64N(4))
		case 3:
			s.ready.Store(amount(600))
			s.touched = min(s.ready.Load()+10*mib, amount(600))
		case 4:
			s.others = amount(1000) - 5*mib
		case 5:
			s.waiting = []float64{0, 0.004, 0.005, 0.02, 0.04, 0.05, 0.2}[r.IntN(7)]
		case 6:
			lib.Sub(library)
			library = amount(500) * r.Int64N(2)
			lib.Add(library)
		case 7:
			s.unread = []error{nil, nil, errors.New("no smaps")}[r.IntN(3)]
			s.unknown = []error{nil, nil, errors.New("no meminfo")}[r.IntN(3)]
		}
		w.review(now)
		p.review(s, library, now)
		got := plain{w.untouched.bytes.Load(), w.untouched.ready.Load(), w.most, w.countedLimit, s.present, p.next, p.set, w.urgency, w.gauge.Sample().Limit}
		if w.untouched.next.Sub(p.next) > time.Second { // this machine was slow to read
			p.next = w.untouched.next
		}
		if got != *p || w.limit != s.container.Load() || w.goLimit.ours.Load() != p.ours {
			t.Fatalf("seed %d, step %d:\n%+v, want\n%+v", seed, step, got, *p)
		}
		if want := policy.MustParse(urgencies[p.urgency].policy).New().String(); w.collector.Policy() != want {
			t.Fatalf("seed %d, step %d: %s, want %s", seed, step, w.collector.Policy(), want)
		}
		if rest := w.read(); rest != max(0, w.outside()-library) {
			t.Fatalf("seed %d, step %d: the gauge reads %d of %d", seed, step, rest, w.outside())
		}
	}
}
