package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// A Profile says where the time of a region went: see [Pools.Profile].
type Profile struct {
	pool.Measurement         // allocations, cycles and refusals of Pools.Memory
	Spent            []Spent // the most time first
}

// Spent is what the work of one name took. The GPU works beside the program, so times of
// On gpu and of the rest overlap.
type Spent struct {
	On    string // gpu: work of streams; wait: the program waited for the GPU; driver: calls of the driver
	Name  string // of a kernel, kind of copy, place of a wait or function of the driver
	Count int64
	Bytes int64 // copied or allocated
	Time  time.Duration
}

// Profile calls f and says where the time of it and of the work that it has queued went:
// kernels, copies and stream-ordered allocations by the GPU's clock, waits, and calls of
// the driver, the profile's own included, beside what [pool.Pool.Measure] says of cycles and refusals. Work of other
// goroutines meanwhile counts, too; work that a graph repeats counts as one. The GPU's times take two events for
// each piece of work, some microseconds; the program pays for them only while a profile
// is taken. One is taken at a time. The error is f's, or that of a wait.
func (p *Pools) Profile(f func() error) (out Profile, err error) {
	if p.Device == nil {
		out.Measurement, err = p.Memory.Measure(f)
		return out, err
	}
	run := &profile{dev: p.Device, spent: map[Spent]*Spent{}}
	if err := p.Device.Synchronize(); err != nil {
		return out, err
	}
	if !p.Device.profile.CompareAndSwap(nil, run) {
		return out, errors.New("cuda: a profile is being taken already")
	}
	before := map[string]CallCount{}
	for _, c := range Calls() {
		before[c.Name] = c
	}
	out.Measurement, err = p.Memory.Measure(f)
	p.Device.profile.Store(nil)
	for _, c := range Calls() {
		run.add("driver", c.Name, c.Calls-before[c.Name].Calls, 0, c.Time-before[c.Name].Time)
	}
	if ended := run.collect(0); err == nil {
		err = ended
	}
	for _, s := range run.spent {
		out.Spent = append(out.Spent, *s)
	}
	slices.SortFunc(out.Spent, func(a, b Spent) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.On, b.On), cmp.Compare(a.Name, b.Name))
	})
	return out, err
}

// String returns the profile as a table.
func (p Profile) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n%-6s  %12s  %8s  %10s  %s\n", p.Measurement, "on", "time", "count", "bytes", "what")
	for _, s := range p.Spent {
		bytes := ""
		if s.Bytes > 0 {
			bytes = pressure.Bytes(s.Bytes).String()
		}
		fmt.Fprintf(&b, "%-6s  %12v  %8d  %10s  %s\n", s.On, s.Time.Round(100*time.Nanosecond), s.Count, bytes, s.Name)
	}
	return b.String()
}

// profile is a Profile that is being taken.
type profile struct {
	dev   *Device
	mu    sync.Mutex
	spent map[Spent]*Spent // by On and Name
	queue []timed
	spare []*event
	err   error
}

// timed is work between two events.
type timed struct {
	from, to *event
	name     string
	bytes    int64
}

// atOnce is how many pieces of work have events at a time, as far as work ends.
const atOnce = 1024

func (p *profile) add(on, name string, count, bytes int64, d time.Duration) {
	if count == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := Spent{On: on, Name: name}
	s := p.spent[key]
	if s == nil {
		s = &Spent{On: on, Name: name}
		p.spent[key] = s
	}
	s.Count, s.Bytes, s.Time = s.Count+count, s.Bytes+bytes, s.Time+d
}

// event puts an event behind the work of s.
func (p *profile) event(s *Stream) (e *event, err error) {
	p.mu.Lock()
	if n := len(p.spare); n > 0 {
		e, p.spare = p.spare[n-1], p.spare[:n-1]
	}
	p.mu.Unlock()
	if e == nil {
		if e, err = s.dev.newEvent(true); err != nil {
			return nil, err
		}
	}
	return e, e.Record(s)
}

// collect adds the work that has ended, and waits until at most leave pieces are left
// if that is 0.
func (p *profile) collect(leave int) error {
	p.mu.Lock()
	queue, err := p.queue, p.err
	p.queue = nil
	p.mu.Unlock()
	for len(queue) > leave {
		x := queue[0]
		if done, _ := x.to.Done(); !done && leave > 0 {
			break
		}
		ended := x.to.wait()
		took, failed := elapsed(x.from, x.to)
		err = errors.Join(err, ended, failed)
		p.add("gpu", x.name, 1, x.bytes, took)
		queue = queue[1:]
		p.mu.Lock()
		p.spare = append(p.spare, x.from, x.to)
		p.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue, p.err = append(queue, p.queue...), err
	if leave > 0 {
		return nil
	}
	for _, e := range p.spare {
		err = errors.Join(err, e.Close())
	}
	return err
}

func nothing() {}

// spend has the profile, if one is taken, time the work that is given to s until the
// result is called.
func (s *Stream) spend(name string, bytes int64) (done func()) {
	p := s.dev.profile.Load()
	if p == nil {
		return nothing
	}
	return p.spend(s, name, bytes)
}

func (p *profile) spend(s *Stream, name string, bytes int64) func() {
	if capturing, err := s.capturing(); capturing || err != nil {
		return nothing
	}
	from, err := p.event(s)
	return func() {
		to, failed := p.event(s)
		p.mu.Lock()
		if p.err = errors.Join(p.err, err, failed); p.err == nil {
			p.queue = append(p.queue, timed{from, to, name, bytes})
		}
		full := len(p.queue) > atOnce
		p.mu.Unlock()
		if full {
			_ = p.collect(atOnce)
		}
	}
}

// A CallCount says how often a function of the driver was called, and how long
// the calls took in all.
type CallCount struct {
	Name  string
	Calls int64
	Time  time.Duration
}

// Calls returns the functions of the driver that this package has called since the
// program started, the most expensive first, over all devices. What asks for properties
// and opens contexts is not in it. To count and time a call takes two readings of
// the clock and two atomic additions.
func Calls() []CallCount {
	all := slices.DeleteFunc(calls(), func(c CallCount) bool { return c.Calls == 0 })
	slices.SortStableFunc(all, func(a, b CallCount) int { return cmp.Compare(b.Time, a.Time) })
	return all
}
