//go:build go1.25

package gc_test

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/internal/freed"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// What embedding promises: see DESIGN, "the live collector". Each promise was broken once by a real program.

func TestAReleaseMayTakeAnyLock(t *testing.T) {
	inBubble(t, gc.Config{Limit: 100}, never(), func(w *world) {
		lock, released := make(chan bool, 1), 0
		for range 3 {
			lock <- true
			own(w.c, new(boxed), 60, func() { lock <- true; released++; <-lock })
			if d := w.takes(func() { w.collect() }); d > 200*ms {
				w.Errorf("a cycle waits for %v for a release that waits for its caller", d)
			}
			<-lock
		}
		if synctest.Wait(); released != 3 || live(w.c) != 0 {
			w.Errorf("%d released", released)
		}
	})
}

func TestReleasesThatDoNotReturn(t *testing.T) {
	inBubble(t, gc.Config{}, never(), func(w *world) {
		block := make(chan bool)
		for range 18 {
			own(w.c, new(boxed), 100, func() { <-block })
		}
		released := 0
		for range 1000 {
			own(w.c, new(boxed), 1, func() { released++ })
		}
		w.c.SetLimit(1000)
		if d := w.takes(func() { w.collect() }); d > 1100*ms {
			w.Errorf("a cycle waits for %v for releases that do not return", d)
		}
		if sleep(10 * time.Second); released != 1000 || w.c.Stats().Pending != 18 {
			w.Errorf("%d of the others are released, %d not: %+v", released, w.c.Stats().Pending, w.c.Stats())
		}
		if w.c.Err() == nil || !strings.Contains(w.c.Err().Error(), "16 releases do not return") || w.c.Stats().Failures != 1 {
			w.Errorf("%v", w.c.Err())
		}
		if own(w.c, new(boxed), 7, func() { released++ }); w.collect().Freed != 7 || released != 1001 {
			w.Error("they stop later ones")
		}
		if got := w.log.of("found dead is not given back yet", ""); len(got) != 1 || !w.c.Stats().OverLimit {
			w.Errorf("told of %+v", w.log.of("over the limit", ""))
		}
		close(block) // what comes late counts, too
		if sleep(time.Second); w.c.Stats().Freed != 2807 || w.c.Stats().Objects != 1019 || live(w.c) != 0 {
			w.Errorf("late: %+v", w.c.Stats())
		}
		if own(w.c, new(boxed), 7, func() {}); w.collect().Freed != 7 || w.c.Stats().Failures != 1 {
			w.Errorf("later: %+v", w.c.Stats())
		}
	})
}

// TestAReleaseMayUseTheCollector, and take its time: what it gives back counts while others of the cycle end.
func TestAReleaseMayUseTheCollector(t *testing.T) {
	for name, use := range map[string]func(*gc.Collector){
		"Own":     func(c *gc.Collector) { ownDead(c, 60) },
		"Collect": func(c *gc.Collector) { c.Collect(policy.TriggerExplicit) },
		"Sync":    func(c *gc.Collector) { c.Sync(nil, func() error { return nil }) },
		"Close":   func(c *gc.Collector) { c.Close() },
		"time":    func(c *gc.Collector) { time.Sleep(99 * ms) },
		"all": func(c *gc.Collector) {
			c.Account(10)
			c.Account(-10)
			c.SetPolicy(nil)
			c.SetLimit(50)
			c.Snapshot()
			c.Wait()
			c.Reap()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, gc.Config{Limit: 100}, never(), func(w *world) {
				var done atomic.Int32
				own(w.c, new(boxed), 60, func() { use(w.c); done.Add(1) })
				own(w.c, new(boxed), 6, func() { use(w.c); done.Add(1) })
				cycle := w.collect()
				if sleep(5 * time.Second); done.Load() != 2 || name == "time" && (cycle.Freed != 66 || cycle.Duration != 208*ms) {
					w.Errorf("%d are done; %+v", done.Load(), cycle)
				}
				w.collect()
			})
		})
	}
}

// TestCloseWaitsForReleases that have not ended when the cycle had waited long enough for them.
func TestCloseWaitsForReleases(t *testing.T) {
	inBubble(t, gc.Config{}, never(), func(w *world) {
		var done atomic.Int32
		for range 30 {
			own(w.c, new(boxed), 1, func() { time.Sleep(50 * ms); done.Add(1) })
		}
		if w.collect(); done.Load() == 30 {
			w.Error("the cycle waited for all of them")
		}
		if w.c.Close(); done.Load() != 30 {
			w.Errorf("%d have ended when Close returns", done.Load())
		}
	})
}

// TestAReleaseComesAfterFinalizers that were due when its owner was found dead. The runtime runs the latest of a batch first.
func TestAReleaseComesAfterFinalizers(t *testing.T) {
	inBubble(t, gc.Config{}, never(), func(w *world) {
		released := 0
		own(w.c, new(boxed), 10, func() { released++ })
		gc.Count(w.c, new(boxed), 5)
		w.e.set(func(e *fake) { e.sweeping = true })
		w.e.finalizers(7, 3)
		if w.collect(); released != 0 || live(w.c) != 15 || w.c.Stats().Pending != 2 {
			w.Errorf("%d released before the finalizers, %d bytes live", released, live(w.c))
		}
		for _, step := range []struct {
			queued, run uint64
			swept       bool
			live        int64
		}{{9, 6, false, 15}, {9, 7, false, 15}, {9, 8, false, 15}, {12, 9, false, 5}, {12, 12, false, 5}, {13, 12, true, 5}, {13, 13, true, 0}} {
			w.e.finalizers(step.queued, step.run)
			if w.e.set(func(e *fake) { e.swept += int64(bit(step.swept)); e.swept = min(e.swept, e.begun) }); w.c.Err() != nil {
				w.Errorf("failed with %v", w.c.Err())
			}
			if sleep(10 * ms); live(w.c) != step.live {
				w.Errorf("%+v: %d bytes live", step, live(w.c))
			}
		}
		w.e.set(func(e *fake) { e.sweeping = false })
		own(w.c, new(boxed), 10, func() { released++ })
		w.e.finalizers(20, 12)
		if w.collect(); released != 1 {
			w.Error("released before finalizers")
		}
		if sleep(3 * time.Second); w.c.Err() == nil || !strings.Contains(w.c.Err().Error(), "one of them blocks") || w.c.Stats().Failures != 1 {
			w.Errorf("a finalizer that blocks is told %d times: %v", w.c.Stats().Failures, w.c.Err())
		}
		if w.e.finalizers(20, 20); live(w.c) != 10 {
			w.Errorf("%d live", live(w.c))
		}
		if sleep(10 * ms); released != 2 || live(w.c) != 0 {
			w.Errorf("released %d", released)
		}
		for range 20 {
			own(w.c, new(boxed), 10, func() { time.Sleep(90 * ms) })
		}
		w.collect()
		sleep(2 * time.Second)
		own(w.c, new(boxed), 10, func() {})
		w.e.finalizers(30, 20)
		if w.collect(); w.c.Stats().Failures != 1 {
			w.Errorf("after long releases, finalizers that are due are said to block at once: %v", w.c.Err())
		}
		w.e.finalizers(30, 30)
		sleep(10 * ms)
		kept := new(boxed)
		if h := gc.Count(w.c, kept, 7); w.collect().Freed != 0 || live(w.c) != 7 || !h.Release() || h.Release() || live(w.c) != 0 {
			w.Error("Count does not last until Release")
		}
		runtime.KeepAlive(kept)
	})
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestWhatCleanupsTakeBackIsACyclesYield. It is waited for, for 100 ms at most, and that is no part of the cycle's length.
func TestWhatCleanupsTakeBackIsACyclesYield(t *testing.T) {
	inBubble(t, gc.Config{}, never(), func(w *world) {
		for i, step := range []struct{ queue, run, freed, waits int }{{0, 5, 70, 5}, {1, 5, 70, 5}, {1, 90, 70, 90}, {1, 200, 0, 100}, {0, 0, 70, 0}} {
			w.c.Account(100)
			w.e.set(func(e *fake) { e.sweeping, e.pending.Cleanups = true, e.pending.Cleaned+uint64(step.queue) })
			w.e.begins = func() {
				time.AfterFunc(w.e.length+time.Duration(step.run)*ms, func() {
					w.c.Account(-70)
					w.e.set(func(e *fake) { e.swept, e.sweeping, e.pending.Cleaned = e.begun, false, e.pending.Cleanups })
				})
			}
			var cycle policy.Cycle
			d := w.takes(func() { cycle = w.collect() })
			wait, want := d-10*ms, time.Duration(step.waits)*ms
			if cycle.Duration != 10*ms || cycle.Exposed != d || cycle.Freed != int64(step.freed) || wait < want || wait > want+3*ms {
				w.Errorf("step %d: waits for %v; %+v", i, d, cycle)
			}
			w.e.begins = nil
			time.Sleep(time.Second)
			if w.c.Account(-30); w.collect().Freed != 0 || live(w.c) != 0 {
				w.Errorf("step %d: the next cycle is credited again, or %d bytes are live", i, live(w.c))
			}
		}
	})
}

// TestCyclesTakeTheirShare of the processor time, whatever the policy wants.
func TestCyclesTakeTheirShare(t *testing.T) {
	for _, share := range []float64{0, 0.5} {
		inBubble(t, gc.Config{Caps: gc.Caps{Cycles: share}}, always(policy.Decision{Action: policy.Overlap, Reason: "wants"}), func(w *world) {
			s := newStore(w.c, pressure.Sample{Limit: mib})
			w.e.length, w.e.work = 30*ms, 30*ms*time.Duration(runtime.GOMAXPROCS(0))
			for w.c.Now() < 3*time.Second {
				s.dead(1, 100) // each cycle is worth it
				s.alloc(100)
				time.Sleep(ms)
			}
			most := 3 * max(share, 0.25) / 0.03
			if n := float64(total(w.c)); n > most+1 || n < 0.8*most {
				w.Errorf("%v cycles of 30 ms in 3 s, want %v", n, most)
			}
			w.c.Wait()
			w.collect()
			capped := w.c.Snapshot().Reasons["capped"]
			if due, now := w.c.Due(), w.c.Snapshot().Reasons["capped"]; due || now != capped+1 {
				w.Errorf("due right after a cycle: %v, and %d capped", due, now)
			}
			if time.Sleep(time.Second); !w.c.Due() {
				w.Error("not due a second later")
			}
		})
	}
}

// TestCyclesThatFreeLittleRest, ever longer, each memory on its own. Another limit, much growth and time end a rest.
func TestCyclesThatFreeLittleRest(t *testing.T) {
	inBubble(t, gc.Config{Caps: gc.Caps{Cycles: 0.9}}, always(policy.Decision{Action: policy.Overlap}), func(w *world) {
		w.e.length, w.e.work = ms, ms*time.Duration(runtime.GOMAXPROCS(0))
		full := newStore(w.c, pressure.Sample{Space: pressure.Device(0), Live: 1 << 30, Limit: 1 << 31})
		run := func(s *store, d time.Duration) uint64 {
			n := total(w.c)
			for end := w.c.Now() + d; w.c.Now() < end; time.Sleep(10 * ms) {
				s.alloc(1)
				w.c.Wait()
			}
			return total(w.c) - n
		}
		if first, then := run(full, 10*time.Second), run(full, 10*time.Second); first < 5 || first > 15 || then > 3 {
			w.Errorf("%d cycles and then %d", first, then)
		}
		other := newStore(w.c, pressure.Sample{Space: pressure.Device(1), Live: 1 << 20, Limit: 1 << 20})
		if n := run(other, time.Second); n == 0 {
			w.Error("another memory rests with the full one")
		}
		other.gate.Close()
		other.owners.Close()
		for what, change := range map[string]func(){
			"another limit":  func() { w.c.SetLimit(1 << 20) },
			"another policy": func() { w.c.SetPolicy(always(policy.Decision{Action: policy.Overlap})) },
			"growth":         func() { full.set(pressure.Sample{Space: pressure.Device(0), Live: 3 << 30, Limit: 1 << 32}) },
			"a natural one":  func() { w.e.natural(true) },
		} {
			if run(full, time.Minute); run(full, 100*ms) > 0 {
				w.Errorf("before %s: no rest", what)
			}
			if change(); run(full, 100*ms) == 0 {
				w.Errorf("%s ends no rest", what)
			}
		}
		if n := run(full, 10*time.Minute); n < 4 || n > 20 {
			w.Errorf("%d cycles in ten minutes", n)
		}
	})
}

// TestCallersAreHeldForTheirShare of any second at most, at the limit and beside cycles that never stop, where no processor is free;
// and for no whole cycle.
func TestCallersAreHeldForTheirShare(t *testing.T) {
	type span struct{ from, to time.Duration }
	for _, caps := range []gc.Caps{{Cycles: 1}, {Cycles: 1, Held: 0.2}, {Cycles: 1, Assist: 2 * ms}} {
		inBubble(t, gc.Config{Caps: caps, Limit: 1 << 20}, always(policy.Decision{Action: policy.Block}), func(w *world) {
			var spans []span
			w.e.length, w.e.busy = 70*ms, true
			most, longest := time.Duration(max(caps.Held, 0.05)*float64(time.Second)), 10*ms
			if caps.Assist > 0 {
				longest = caps.Assist
			}
			lock, done := make(chan bool, 1), make(chan bool)
			lock <- true
			for i := range 3 {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				go func() {
					defer func() { done <- true }()
					for w.c.Now() < 8*time.Second {
						from, bytes := w.c.Now(), 1+r.Int64N(1<<17)
						h := own(w.c, new(boxed), bytes, func() {})
						<-lock
						spans = append(spans, span{from, w.c.Now()})
						lock <- true
						h.Release()
						time.Sleep(time.Duration(r.IntN(int(5 * ms))))
					}
				}()
			}
			for range 3 {
				<-done
			}
			slices.SortFunc(spans, func(a, b span) int { return int(a.from - b.from) })
			var held time.Duration
			for i, first := range spans {
				sum, last := time.Duration(0), first.from
				for _, s := range spans[i:] {
					end := min(s.to, first.from+time.Second)
					sum += max(0, end-max(last, s.from))
					last = max(last, end)
				}
				if held = max(held, sum); sum > most || first.to-first.from > longest {
					w.Fatalf("held for %v of the second after %v, and one for %v", sum, first.from, first.to-first.from)
				}
			}
			if s := w.c.Stats(); held < most/3 || s.MaxPause > longest || s.Exposed < time.Duration(sum(s.Pauses[:]))*100*time.Microsecond/2 {
				w.Errorf("held for at most %v of a second: %+v", held, s)
			}
		})
	}
}

// TestTheFirstCallerGivesWay to a cycle where no processor is free. That is no pause that the cycle caused.
func TestTheFirstCallerGivesWay(t *testing.T) {
	for _, busy := range []bool{false, true} {
		inBubble(t, gc.Config{Caps: gc.Caps{Cycles: 1}}, always(policy.Decision{Action: policy.Overlap}), func(w *world) {
			time.Sleep(time.Second) // callers' time has come in
			w.e.busy, w.e.length = busy, 5*ms
			owner := new(boxed)
			d := w.takes(func() { own(w.c, owner, mib, func() {}) })
			s := w.c.Stats()
			if time.Sleep(time.Second); d != 5*ms*time.Duration(bit(busy)) || s.Exposed != d || w.c.Stats().Last.Exposed != 0 || live(w.c) != mib {
				w.Errorf("busy %v: held for %v, %+v", busy, d, w.c.Stats())
			}
			runtime.KeepAlive(owner)
		})
	}
}

// TestAFullLimitIsPassedAndSaid: a cycle runs beside the caller, again only after a rest, and none for each request.
func TestAFullLimitIsPassedAndSaid(t *testing.T) {
	for _, rule := range []string{"pacer", "threshold:0.8", "cudajl", "never"} {
		inBubble(t, gc.Config{Limit: 100 * mib}, policy.MustParse(rule).New(), func(w *world) {
			w.e.work = 10 * ms
			kept := make([]boxed, 101)
			for i := range kept {
				own(w.c, &kept[i], mib, func() {})
				time.Sleep(ms)
			}
			before := total(w.c)
			for range 3000 {
				own(w.c, new(boxed), 100<<10, func() {}).Release() // a little on top, given back by hand
				time.Sleep(ms)
			}
			if n := total(w.c) - before; n > 30 {
				w.Errorf("%s: %d cycles in 3 s", rule, n)
			}
			s := w.c.Stats()
			said := w.log.of("over the limit, with nothing to free", "")
			if !s.OverLimit || len(said) != 1 || s.Cycles[policy.TriggerRefusal] == 0 && rule == "never" {
				w.Errorf("%s: %+v, said %+v", rule, s, said)
			}
			runtime.KeepAlive(kept)
		})
	}
	inBubble(t, gc.Config{Caps: gc.Caps{Cycles: 0.9}, Limit: 1000}, never(), func(w *world) {
		w.c.Account(990)
		if w.c.Account(10); total(w.c) > 0 || w.c.Wait() {
			w.Error("what fits is refused")
		}
		w.c.Account(1)
		if !w.c.Wait() || w.c.Stats().Cycles[policy.TriggerRefusal] != 1 || w.c.Stats().Last.Action != policy.Overlap {
			w.Errorf("one byte too many: %+v", w.c.Stats())
		}
		for range 100 {
			w.c.Account(1)
			w.c.Account(-1)
		}
		if w.c.Wait(); total(w.c) != 1 {
			w.Errorf("%d cycles, although the limit is full of what is in use", total(w.c))
		}
		sleep(50 * ms)
		w.c.Account(40 * mib) // far more than the cycle in vain has left
		if w.c.Account(1); !w.c.Wait() || total(w.c) != 2 {
			w.Errorf("%d cycles where much more is above the limit", total(w.c))
		}
	})
	inBubble(t, gc.Config{Limit: 1000}, never(), func(w *world) {
		w.c.Account(900)
		w.e.begins = func() { w.c.Account(300) }
		w.collect()
		synctest.Wait()
		got := w.log.of("more was added while the cycle ran", "")
		if len(got) != 1 || !got[0].has(map[string]any{"live_bytes": int64(1200), "added_bytes": int64(300), "enough_bytes": int64(1500)}) {
			w.Errorf("told %+v, want 300 bytes that came beside the cycle", w.log.of("over the limit", ""))
		}
		w.e.begins = nil
	})
}

// TestWhereCallersMayBeHeldAFullLimitWaits: for the cycle under way or a new one; and where that is in vain, it tries again once an
// eighth of the limit has been added.
func TestWhereCallersMayBeHeldAFullLimitWaits(t *testing.T) {
	inBubble(t, gc.Config{Limit: 800, Caps: uncapped}, never(), func(w *world) {
		w.c.Account(700)
		for i, step := range []struct{ bytes, dead, cycles int64 }{
			{100, 0, 0}, {1, 0, 1}, {50, 0, 1}, {48, 0, 1}, {1, 0, 1}, {1, 0, 2}, {100, 0, 2}, {1, 0, 3}, {1, 450, 4}, {99, 0, 4}, {1, 0, 5},
		} {
			for range step.dead {
				w.c.SetLimit(0)
				ownDead(w.c, 1)
				w.c.SetLimit(800)
			}
			if w.c.Account(step.bytes); total(w.c) != uint64(step.cycles) {
				w.Errorf("step %d: %d cycles, want %d, with %d live", i, total(w.c), step.cycles, live(w.c))
			}
		}
		w.c.Account(-live(w.c) + 700)
		ownDead(w.c, 100)
		n := total(w.c)
		beside(func() { w.collect() })
		if d := w.takes(func() { w.c.Account(100) }); d < 10*ms || d > 11*ms || total(w.c) != n+1 || live(w.c) != 800 {
			w.Errorf("waits for %v for the cycle under way, and %d more run", d, total(w.c)-n-1)
		}
	})
}

// TestCyclesOfTheRuntimeGiveBack what they find, before Close and after it: large owners with the first, small ones with the second.
func TestCyclesOfTheRuntimeGiveBack(t *testing.T) {
	inBubble(t, gc.Config{Policy: nil}, never(), func(w *world) {
		w.e.set(func(e *fake) { e.paid = time.Second }) // what other cycles took
		for _, closed := range []bool{false, true} {
			small, large := 0, 0
			if closed {
				own(w.c, new(boxed), 4<<10, func() { large-- })
				w.c.Close()
				w.e.natural(true)
				large++
			}
			for range 50 {
				own(w.c, new(boxed), 4<<10-1, func() { small++ })
				own(w.c, new(boxed), 4<<10, func() { large++ })
				own(w.c, new(boxed), 10<<10, func() { small++ }).Resize(4<<10 - 1)
				own(w.c, new(boxed), 1, func() { large++ }).Resize(4 << 10)
			}
			w.e.natural(true)
			if large != 100 || small == 100 {
				w.Errorf("closed %v: %d large and %d small ones are given back", closed, large, small)
			}
			w.e.natural(false)
			if freed := w.c.Reap(); small != 100 || freed == 0 || w.c.Reap() != 0 {
				w.Errorf("closed %v: %d small ones are given back with the second, %d bytes", closed, small, freed)
			}
		}
		if s := w.c.Stats(); s.Cycles[policy.TriggerNatural] != 5 || total(w.c) != 5 || s.Busy != 0 || s.Processor != 0 || s.Objects != 401 || live(w.c) != 0 {
			w.Errorf("%+v", s)
		}
	})
}

// TestAQuietProgramGetsOneCycle each time that it is quiet, after 1 to 1.5 times Idle, but not under never.
func TestAQuietProgramGetsOneCycle(t *testing.T) {
	for _, test := range []struct {
		rule string
		idle time.Duration
		want uint64
	}{{"pacer", 0, 1}, {"pacer", 100 * ms, 1}, {"pacer", -1, 0}, {"never", 0, 0}} {
		cfg := gc.Config{Limit: 1 << 40, Idle: test.idle}
		if test.idle == 0 {
			cfg.Idle = time.Second // the same, as inBubble takes it
		}
		inBubble(t, cfg, policy.MustParse(test.rule).New(), func(w *world) {
			kept := []*boxed{new(boxed), new(boxed), new(boxed)}
			for i := range uint64(3) {
				if i == 1 {
					w.c.Account(1 << 20)
				} else {
					own(w.c, kept[i], 1<<20, func() {})
				}
				time.Sleep(cfg.Idle - ms)
				if n := total(w.c); n != i*test.want {
					w.Errorf("%s: %d cycles while the program is at work", test.rule, n)
				}
				if time.Sleep(cfg.Idle/2 + 12*ms); total(w.c) != (i+1)*test.want {
					w.Errorf("%s: %d cycles after %d quiet times", test.rule, total(w.c), i+1)
				}
				if time.Sleep(time.Minute); total(w.c) != (i+1)*test.want {
					w.Errorf("%s: %d cycles later", test.rule, total(w.c))
				}
			}
			for _, e := range w.log.of("cycle ended", "") {
				if !e.has(map[string]any{"trigger": "explicit", "action": "overlap", "reason": "idle"}) {
					w.Errorf("%+v", e)
				}
			}
			runtime.KeepAlive(kept)
		})
	}
}

// TestMisuseIsNamedOnceItShows: an owner that its own release keeps alive, in a way that Own cannot see, and more of them. What only
// stays, as the weights of a model do, is told nobody.
func TestMisuseIsNamedOnceItShows(t *testing.T) {
	inBubble(t, gc.Config{}, never(), func(w *world) {
		var keep []*boxed
		owns := func(n int, site func(*gc.Collector, *boxed) gc.Handle) {
			for range n {
				keep = append(keep, new(boxed))
				site(w.c, keep[len(keep)-1])
			}
		}
		stays := func(c *gc.Collector, o *boxed) gc.Handle { return gc.Own(c, o, 64*mib, func(int) {}, 0) }
		grows := func(c *gc.Collector, o *boxed) gc.Handle { return gc.Own(c, o, 64*mib, func(int) {}, 1) }
		owns(400, stays)
		for i, step := range []struct{ more, cycles, survivors, told int }{
			{400, 15, 0, 0}, {0, 1, 2, 0}, {0, 3, 2, 0}, {100, 20, 2, 0}, {2500, 20, 2, 1}, {0, 20, 2, 1},
		} {
			owns(step.more, grows)
			for range step.cycles {
				time.Sleep(1100 * ms)
				w.collect()
			}
			all := w.c.Snapshot().Survivors
			if len(all) != step.survivors {
				w.Fatalf("step %d: survivors %+v", i, all)
			}
			for j, s := range all {
				if j > 0 && s.Bytes > all[j-1].Bytes {
					w.Errorf("step %d: the larger of two comes later: %+v", i, all)
				}
				if !strings.Contains(s.Site, "TestMisuseIsNamedOnceItShows") || s.Cycles < 16 || s.Samples < 10 || s.Bytes < 100*64*mib {
					w.Errorf("step %d: %+v", i, s)
				}
			}
			got := w.log.of("it has doubled", "")
			if len(got) != step.told || len(got) > 0 && (got[0].attrs["held"] == nil || !strings.Contains(got[0].attrs["site"].(string), "TestMisuse")) {
				w.Errorf("step %d: told %+v", i, got)
			}
		}
		var sum int64
		for _, s := range w.c.Snapshot().Survivors {
			sum += s.Bytes
		}
		if want := float64(len(keep)) * (64 * mib); math.Abs(float64(sum)-want) > want/2 {
			w.Errorf("survivors hold %d bytes of %v", sum, want)
		}
		runtime.KeepAlive(keep)
	})
}

// TestWhatCyclesAreWorthIsSaidOnce in the log, not for each cycle; a snapshot has it always.
func TestWhatCyclesAreWorthIsSaidOnce(t *testing.T) {
	inBubble(t, gc.Config{}, always(policy.Decision{Action: policy.Overlap}), func(w *world) {
		var level atomic.Int64
		g := gc.Watch(w.c, level.Load)
		for range 60 {
			level.Add(64 * mib) // a leak
			sleep(time.Minute)
		}
		got := w.log.of("cycles bring almost nothing here: memory fell by 0 B in", "")
		if n := total(w.c); n < 12 || len(got) != 1 || got[0].level != slog.LevelDebug {
			w.Errorf("%d cycles, and told %+v", n, got)
		}
		if text := w.c.Snapshot().Sources[0].Worth; !strings.HasSuffix(text, "they may take 0.00195 % of the program's processor time") {
			w.Errorf("the snapshot has %q", text)
		}
		g.Close()
	})
}

// TestCyclesThatHoldMemoryMayTakeAll of the processor time, and a snapshot says so.
func TestCyclesThatHoldMemoryMayTakeAll(t *testing.T) {
	p := new(scripted)
	p.decide = func(at policy.Point) (d policy.Decision) {
		if at.Request >= 32*mib {
			d.Action = policy.Overlap
		}
		return d
	}
	inBubble(t, gc.Config{}, p, func(w *world) {
		var level atomic.Int64
		g := gc.Watch(w.c, level.Load)
		defer g.Close()
		w.e.begins = func() {
			w.e.set(func(e *fake) { e.pending.Finalizers = e.pending.Finalized + 1 })
			time.AfterFunc(ms, func() { // once the mark has ended
				level.Store(mib)
				w.e.set(func(e *fake) { e.pending.Finalized = e.pending.Finalizers })
			})
		}
		for range 4 {
			level.Add(4 * gib)
			sleep(time.Second)
		}
		if text := w.c.Snapshot().Sources[0].Worth; !strings.HasPrefix(text, "memory had grown much") || !strings.HasSuffix(text, "they may take 100 % of the program's processor time") || g.Barren() {
			w.Errorf("the snapshot has %q", text)
		}
	})
}

// TestTrimsTakeLittle after cycles that bring a gauge down by little.
func TestTrimsTakeLittle(t *testing.T) {
	defer freed.SetTrimmer(func(freed.Cycle) {})
	inBubble(t, gc.Config{}, never(), func(w *world) {
		var level atomic.Int64
		var trims, share atomic.Int64
		freed.SetTrimmer(func(c freed.Cycle) { trims.Add(1); share.Store(int64(100 * c.Share)) })
		g := gc.Watch(w.c, level.Load)
		defer g.Close()
		w.e.begins = func() { time.AfterFunc(ms, func() { level.Add(-mib) }) } // once the mark has ended
		for range 8 {
			level.Store(100 * mib)
			sleep(time.Second)
			w.collect()
		}
		if trims.Load() == 0 || share.Load() != 1 {
			w.Errorf("%d trims, the last may take %d %% of the program's processor time", trims.Load(), share.Load())
		}
	})
}

// TestAGaugeWaitsForFinalizers before it asks for another cycle, and what they free is the yield of the last one. Nobody is held for it.
func TestAGaugeWaitsForFinalizers(t *testing.T) {
	p := always(policy.Decision{Action: policy.Block})
	inBubble(t, gc.Config{}, p, func(w *world) {
		var level atomic.Int64
		level.Store(100 * gib)
		g := gc.Watch(w.c, level.Load)
		w.e.begins = func() { w.e.set(func(e *fake) { e.pending.Finalizers = e.pending.Finalized + 1 }) }
		grow := func() {
			for range 100 {
				level.Add(2 * gib)
				if d := w.takes(func() { g.Look() }); d > 0 {
					w.Fatalf("held for %v", d)
				}
				sleep(10 * ms)
			}
		}
		grow()
		if n := total(w.c); n != 1 {
			w.Fatalf("%d cycles while a finalizer of the first is due", n)
		}
		if asked := p.shown()[0]; asked.Request != 2*gib || asked.Sample.Live+asked.Request != asked.Sample.Reserved {
			w.Errorf("a rise of 2 GiB asks %+v", asked)
		}
		level.Add(-150 * gib)
		w.e.set(func(e *fake) { e.pending.Finalized = e.pending.Finalizers })
		sleep(time.Second)
		grow()
		if s := w.c.Stats(); total(w.c) != 2 || s.Freed < 100*gib || s.Freed > 150*gib || s.Exposed != 0 {
			w.Errorf("%d cycles once it has run: %+v", total(w.c), s)
		}
		w.e.begins = func() {
			time.AfterFunc(12*ms, func() { // soon after the mark
				level.Add(-50 * gib)
				w.e.set(func(e *fake) { e.pending.Finalized = e.pending.Finalizers })
			})
		}
		if freed := w.collect().Freed; freed < 40*gib || freed > 60*gib {
			w.Errorf("a cycle freed %d bytes, of 50 GiB", freed)
		}
		g.Close()
	})
}

// TestAnOwnerGetsSmaller: what it held no longer is no yield of a cycle, and the log has what the cycle freed.
func TestAnOwnerGetsSmaller(t *testing.T) {
	p := new(scripted)
	inBubble(t, gc.Config{}, p, func(w *world) {
		owner := new(boxed)
		own(w.c, owner, 2*mib, func() {}).Resize(mib)
		ownDead(w.c, mib)
		w.collect()
		synctest.Wait() // the line comes after the caller goes on
		if said := w.log.of("cycle ended", ""); len(said) != 1 || !said[0].has(map[string]any{"freed_bytes": int64(mib)}) {
			w.Errorf("told %+v", said)
		}
		if x := p.shown()[1]; x.Allocated != 2*mib || x.Freed != mib {
			w.Errorf("after the owner got smaller: %+v", x)
		}
		runtime.KeepAlive(owner)
	})
}
