package live

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// Config is the world of a live run.
type Config struct {
	Policy   policy.Policy             // fresh; nil: never
	Limit    int64                     // of the pool, in bytes; 0 = none
	Memory   Memory                    // of the pool
	Space    pressure.Space            // of the trace: its events are executed
	Ballast  int64                     // bytes of Go heap with pointers
	Wait     func(time.Duration) error // keeps the device busy for that long and waits for it; nil: the processor sleeps
	Launch   func(time.Duration) error // keeps the device busy for that long and does not wait; for Elastic, with Wait
	Compute  bool                      // host work is a fixed number of turns, slower beside a cycle; else it takes the recorded time
	Elastic  bool                      // the device works on while the program is held, so that the next wait is shorter
	Speed    float64                   // 1 = as recorded, 2 = twice as fast; 0 = as fast as possible, without waits
	Log      *sim.Log                  // collects cycles, pauses and decisions; may be nil
	Recorder trace.Sink                // records the pool and the collector; nil = off
	Progress func(share float64)       // receives the executed share of the recorded time, now and then; nil = off

	probe *probe // nil = off
}

// A Report is what a live run measured.
type Report struct {
	sim.Result
	Natural  int           // cycles that the Go runtime started
	Work     Work          // with Config.Compute
	Late     time.Duration // largest delay behind the recording, without pauses
	Reserved int64         // peak bytes that the pool had taken from its upstream
	Stats    gc.Stats
}

// Run executes one space of t and returns the metrics. It takes the time of the recording and
// its pauses, and as much memory. An allocation that does not fit under the limit fails and is
// counted, and the run goes on without it. Run returns an error if t is not a valid trace, if
// the pool fails in another way, or if ctx is done. The report is then about the executed part.
func Run(ctx context.Context, t *trace.Trace, cfg Config) (Report, error) {
	p, err := compile(t, cfg.Space)
	if err != nil {
		return Report{}, err
	}
	if host, err := pressure.HostMemory(); err == nil && cfg.Ballast > host.Total {
		return Report{}, fmt.Errorf("live: a ballast of %v does not fit into the memory of %v", pressure.Bytes(cfg.Ballast), pressure.Bytes(host.Total))
	}
	ballast := newBallast(cfg.Ballast)
	defer runtime.KeepAlive(ballast)
	runtime.GC()

	rule := cfg.Policy
	if rule == nil {
		rule = policy.Spec{}.New()
	}
	if cfg.Log == nil {
		cfg.Log = new(sim.Log)
	}
	c, err := gc.New(gc.Config{Policy: &watched{rule, cfg.Log}, Caps: gc.Caps{Cycles: 1}, Idle: -1, Recorder: cfg.Recorder}) // a simulation has neither
	if err != nil {
		return Report{}, fmt.Errorf("live: %w", err)
	}
	defer c.Close()
	m, err := cfg.Memory.newPool(c, cfg.Limit, cfg.Recorder)
	if err != nil {
		return Report{}, fmt.Errorf("live: %w", err)
	}
	defer m.Close()
	r := &runner{program: p, cfg: cfg, collector: c, pool: m, objects: make([]array.Array[byte], p.slots), probe: cfg.probe}
	for _, name := range p.places {
		r.places = append(r.places, &gc.WaitPlace{Name: name})
	}
	err = r.run(ctx)
	c.Close() // no cycle is under way now
	return r.report(rule.String()), err
}

type runner struct {
	*program
	cfg       Config
	collector *gc.Collector
	pool      *pool.Pool
	probe     *probe              // nil = off
	objects   []array.Array[byte] // by slot; zero once dropped
	sizes     []int64             // of objects, by slot
	places    []*gc.WaitPlace
	clock     clock
	stints    []stint
	ahead     time.Duration // lead of the collector's clock
	shift     time.Duration // delay of the program by pauses
	device    time.Duration // with elastic waits: when the device is done, unless it is late
	lead      sim.Runahead  // of the device
	exposed   time.Duration // last reading of the collector's sum of pauses
	out       Report
	reachable int64
	last      time.Duration // when live was last read
	before    struct{ live, reachable int64 }
	area      struct{ live, garbage float64 } // byte ns
}

func (r *runner) run(ctx context.Context) error {
	r.sizes = make([]int64, r.slots)
	if r.cfg.Compute {
		r.clock.rate = computeRate()
	}
	r.clock.start, r.clock.speed = time.Now(), r.cfg.Speed
	r.ahead = r.collector.Now() - r.clock.now()
	if r.cfg.Elastic {
		if err := r.launch(0); err != nil {
			return fmt.Errorf("live: %s: %w", r.load.Name, err)
		}
	}
	for i := range r.steps {
		s := &r.steps[i]
		if i&63 == 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if r.cfg.Progress != nil {
				r.cfg.Progress(float64(s.time) / float64(max(1, r.load.Span)))
			}
		}
		due := r.clock.scaled(s.time) + r.shift
		before := r.clock.now()
		r.clock.work(due)
		now := r.clock.now()
		if now-before > idleGap {
			r.rest(before, now)
		}
		if r.cfg.Compute && before < due {
			r.shift += now - due // the time that the work lost
			r.stints = append(r.stints, stint{before, now, now - due})
		}
		r.out.Late = max(r.out.Late, now-due)
		if err := r.step(i, now); err != nil {
			return fmt.Errorf("live: %s: step %d: %w", r.load.Name, i, err)
		}
		r.integrate(r.clock.now())
		if r.probe != nil {
			r.probe.update(r.collector)
		}
	}
	return nil
}

// rest notes an interval in which the program was held or waited.
func (r *runner) rest(from, to time.Duration) {
	if r.probe != nil {
		r.probe.idle.add(int64(from+r.ahead), int64(to+r.ahead))
	}
}

func (r *runner) step(i int, now time.Duration) error {
	s := &r.steps[i]
	switch s.kind {
	case trace.Alloc:
		return r.alloc(s, now)
	case trace.Mark:
		r.lead.Measured(float64(r.clock.scaled(s.arg)))
		return nil
	case trace.Sync:
		done, late := now+r.clock.scaled(s.arg), time.Duration(r.lead.Late())
		if r.cfg.Elastic {
			done = max(now, r.device+late)
		}
		err := r.pool.Sync(r.places[s.slot], func() error { return r.wait(done, late) })
		r.lead.Wait(0)
		r.account(s, done)
		r.rest(now, r.clock.now())
		if r.cfg.Elastic && err == nil {
			r.shift = min(r.shift, r.clock.now()-r.clock.scaled(s.time+s.arg))
			err = r.launch(i + 1)
		}
		return err
	case trace.Free:
		r.objects[s.slot].Free()
	}
	r.reachable -= r.sizes[s.slot]
	if r.probe != nil && s.kind == trace.Drop && r.sizes[s.slot] > 0 {
		r.probe.drops = append(r.probe.drops, now+r.ahead)
	}
	r.objects[s.slot] = array.Array[byte]{}
	return nil
}

// wait waits for the device, which is done at a time that includes its delay late.
func (r *runner) wait(done, late time.Duration) error {
	switch left := done - r.clock.now(); {
	case r.cfg.Wait == nil:
		r.clock.wait(done)
	case r.cfg.Elastic:
		return r.cfg.Wait(late) // and for what launch has queued
	case left > 0:
		return r.cfg.Wait(left)
	}
	return nil
}

// launch gives the device work until the end of the next wait from step i on, as if nothing held
// the program before it.
func (r *runner) launch(i int) error {
	now := r.clock.now()
	for ; i < len(r.steps); i++ {
		if s := &r.steps[i]; s.kind == trace.Sync {
			r.device = r.clock.scaled(s.time+s.arg) + r.shift
			if r.cfg.Launch != nil {
				return r.cfg.Launch(max(0, r.device-now))
			}
			return nil
		}
	}
	return nil
}

func (r *runner) alloc(s *step, now time.Duration) error {
	a, err := array.New[byte](r.pool, int(s.arg))
	pause := r.account(s, now)
	if errors.Is(err, pool.ErrOutOfMemory) {
		r.out.FailedAllocs++
		r.sizes[s.slot] = 0
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.cfg.Memory.touch(a); err != nil {
		return err
	}
	if r.probe != nil {
		r.probe.allocated(pause, r.clock.now()-now)
	}
	r.objects[s.slot], r.sizes[s.slot] = a, s.arg
	r.reachable += s.arg
	r.out.PeakLive = max(r.out.PeakLive, r.live())
	return nil
}

// account notes a pause if the collector has held the step, and returns its length. A pause
// begins when the step would have ended without the collector.
func (r *runner) account(s *step, since time.Duration) (pause time.Duration) {
	stats := r.collector.Stats()
	if stats.Exposed == r.exposed {
		return 0
	}
	r.exposed = stats.Exposed
	pause = r.clock.now() - since
	r.shift += pause
	r.lead.Pause(float64(pause))
	r.out.ExposedPause += pause
	r.rest(since, since+pause)
	r.out.MaxPause = max(r.out.MaxPause, pause)
	r.cfg.Log.Pauses = append(r.cfg.Log.Pauses, sim.Pause{At: since, Trace: time.Duration(s.time), Length: pause})
	return pause
}

func (r *runner) live() int64 { return r.pool.Sample().Live }

// integrate adds the time since the last step to the means. Live bytes have not changed in that
// time.
func (r *runner) integrate(now time.Duration) {
	dt := float64(now - r.last)
	r.area.live += float64(r.before.live) * dt
	r.area.garbage += float64(max(0, r.before.live-r.before.reachable)) * dt
	r.last = now
	r.before.live, r.before.reachable = r.live(), r.reachable
}

func (r *runner) report(name string) Report {
	out := &r.out
	stats := r.collector.Stats()
	out.Stats = stats
	out.Trace, out.Policy = r.load.Name, name
	out.LimitBytes = r.cfg.Limit
	out.LimitFactor = float64(r.cfg.Limit) / float64(max(1, r.load.PeakReachable))
	out.Collections = int(stats.Cycles[policy.TriggerPolicy])
	out.RefusalCollections = int(stats.Cycles[policy.TriggerRefusal])
	out.Natural = int(stats.Cycles[policy.TriggerNatural])
	out.GCBusy = stats.Busy
	if n := out.Collections + out.RefusalCollections; n > 0 {
		out.Cycle = stats.Busy / time.Duration(n)
	}
	out.Span, out.Elapsed = r.load.Span, r.last
	out.MeanLive = r.area.live / float64(max(1, r.last))
	out.MeanGarbage = r.area.garbage / float64(max(1, r.last))
	if r.cfg.Compute {
		out.Work = workOf(r.stints, r.cfg.Log.Cycles, r.ahead)
	}
	out.Reserved = r.pool.Stats().ReservedPeak
	return *out
}

// A watched policy logs its decisions and cycles.
type watched struct {
	policy.Policy
	log *sim.Log
}

func (w *watched) Decide(p policy.Point) policy.Decision {
	d := w.Policy.Decide(p)
	if w.log.KeepDecisions {
		w.log.Decisions = append(w.log.Decisions, sim.Decided{Point: p, Decision: d})
	}
	return d
}

func (w *watched) Observe(c policy.Cycle) {
	w.log.Cycles = append(w.log.Cycles, sim.Collected{Cycle: c})
	w.Policy.Observe(c)
}
