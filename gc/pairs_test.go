package gc

import (
	"context"
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

var pairsFor = flag.Duration("pairs", 0, "how long TestAllPairsOfMethods runs; 0: each pair a few times")

// TestAllPairsOfMethods: "safe for concurrent use" holds for every two methods, under -race too. Each pair runs on a
// collector of its own, on two goroutines each, beside owners that die.
func TestAllPairsOfMethods(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	methods := allMethods()
	var names []string
	for name := range methods {
		names = append(names, name)
	}
	end := time.Now().Add(*pairsFor)
	for {
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for i, a := range names {
			for _, b := range names[i:] {
				if testing.Short() && *pairsFor == 0 && rng.IntN(4) > 0 && a != "Watch" && b != "Watch" {
					continue
				}
				soon(t, time.Minute, a+" beside "+b, func() { pair(t, methods[a], methods[b]) })
			}
		}
		if time.Now().After(end) {
			return
		}
	}
}

// A paired is what methods are called on.
type paired struct {
	*Collector
	gauge  *Gauge
	gate   *Gate
	handle Handle
	owner  *thing
	sink   trace.Sink
}

func pair(t *testing.T, a, b func(*paired)) {
	c, err := New(Config{Policy: policy.MustParse("always").New(), Limit: 1 << 20, Caps: Caps{Cycles: 1}, Idle: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := &paired{Collector: c, owner: new(thing), sink: &recording{made: time.Now()}}
	p.gauge = Watch(c, func() int64 { return 1 << 20 })
	p.gate = c.NewGate(new(level))
	p.handle = ownFunc(c, p.owner, 10, func() {})
	ownFunc(c, new(thing), 1<<19, func() {})
	start := make(chan struct{})
	var done sync.WaitGroup
	for _, f := range []func(*paired){a, b, a, b} {
		done.Add(1)
		go func() {
			defer done.Done()
			<-start
			f(p)
			f(p)
		}()
	}
	close(start)
	done.Wait()
	runtime.KeepAlive(p.owner)
	p.gauge.Close()
	atRest(t, c)
}

func allMethods() map[string]func(*paired) {
	return map[string]func(*paired){
		"Account":     func(p *paired) { p.Account(100); p.Account(-100) },
		"Own":         func(p *paired) { ownFunc(p.Collector, new(thing), 1<<18, func() {}) },
		"Count":       func(p *paired) { Count(p.Collector, new(thing), 1<<18) },
		"Release":     func(p *paired) { p.handle.Release() },
		"Resize":      func(p *paired) { p.handle.Resize(20) },
		"Watch":       func(p *paired) { Watch(p.Collector, func() int64 { return 5 }).Close() },
		"Look":        func(p *paired) { p.gauge.Look() },
		"Gauge":       func(p *paired) { p.gauge.SetLimit(100); p.gauge.Resting() },
		"Gauge.Close": func(p *paired) { p.gauge.Close() },
		"Gate":        func(p *paired) { p.gate.Allocating(10, 10); p.gate.Refused(10); p.gate.Changed() },
		"Gate.Close":  func(p *paired) { p.gate.Close() },
		"watch":       func(p *paired) { p.Collector.NewGate(new(level)).Close() },
		"registry":    func(p *paired) { NewWeakRegistry(p.gate, 0, func(Slot, int, int64) {}).Close() },
		"Close":       func(p *paired) { p.Close() },
		"Collect":     func(p *paired) { p.Collect(policy.TriggerExplicit) },
		"Refusal":     func(p *paired) { p.Collect(policy.TriggerRefusal) },
		"Wait":        func(p *paired) { p.Wait(); p.running() },
		"Reap":        func(p *paired) { p.Reap() },
		"natural":     func(p *paired) { runtime.GC() },
		"Sync":        func(p *paired) { p.Sync(&WaitPlace{Name: "x"}, func() error { return nil }) },
		"Due":         func(p *paired) { p.Due() },
		"SetPolicy":   func(p *paired) { p.SetPolicy(policy.MustParse("pacer").New()); p.Policy() },
		"SetLimit":    func(p *paired) { p.SetLimit(1 << 19) },
		"SetRecorder": func(p *paired) { p.SetRecorder(p.sink); p.SetRecorder(nil) },
		"Stats": func(p *paired) {
			p.Stats()
			p.Snapshot()
			_ = p.Err()
		},
		"Diagnose":      func(p *paired) { _ = p.Diagnose(context.Background(), 0).Verdict },
		"Default":       func(p *paired) { Default().Stats() },
		"pressure.Host": func(p *paired) { pressure.HostMemory() },
	}
}
