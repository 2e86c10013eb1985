package debug_test

import (
	"errors"
	"fmt"
	"runtime"
	godebug "runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/gc/internal/verdict"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// TestTheVerdictOfASnapshot is the worst of what the last minute shows and of what package gc/auto says of the process.
func TestTheVerdictOfASnapshot(t *testing.T) {
	cores := time.Duration(runtime.GOMAXPROCS(0))
	work := func(w gc.Work) []gc.Work { w.Start = 100 * time.Second; return []gc.Work{w} }
	cycles := func(triggers ...policy.Trigger) (w gc.Work) {
		for _, t := range triggers {
			w.Cycles[t]++
		}
		return w
	}
	full := []gc.Watched{{Sample: pressure.Sample{Live: 5, Limit: 100}}, {Sample: pressure.Sample{Live: 96, Limit: 100}}}
	for _, test := range []struct {
		s              gc.Snapshot
		level, verdict string
	}{
		{gc.Snapshot{}, "good", "nothing wrong"},
		{gc.Snapshot{Err: errors.New("x"), Stats: gc.Stats{OverLimit: true}}, "bad", "panic contained"},
		{gc.Snapshot{Stats: gc.Stats{OverLimit: true}, Sources: full}, "bad", "over the limit"},
		{gc.Snapshot{Work: work(cycles(policy.TriggerRefusal, policy.TriggerPolicy))}, "watch", "refusals"},
		{gc.Snapshot{Work: work(cycles(policy.TriggerRefusal, policy.TriggerPolicy, policy.TriggerPolicy))}, "good", "nothing wrong"},
		{gc.Snapshot{Work: work(gc.Work{Exposed: 3001 * time.Millisecond})}, "watch", "callers held"},
		{gc.Snapshot{Work: work(gc.Work{Exposed: 2999 * time.Millisecond})}, "good", "nothing wrong"},
		{gc.Snapshot{Work: work(gc.Work{Processor: 14 * time.Second * cores})}, "watch", "cycles at their cap"},
		{gc.Snapshot{Work: work(gc.Work{Processor: 13 * time.Second * cores})}, "good", "nothing wrong"},
		{gc.Snapshot{Sources: full}, "watch", "near the limit"},
		{gc.Snapshot{Sources: full, Process: gc.Finding{Level: "bad", Verdict: "growth outside Go"}}, "bad", "growth outside Go"},
		{gc.Snapshot{Sources: full, Process: gc.Finding{Level: "watch", Verdict: "allocator retention"}}, "watch", "near the limit"},
	} {
		test.s.Now, test.s.Step, test.s.Caps.Cycles = 130*time.Second, time.Millisecond, 0.25
		if f := debug.Verdict(&test.s); f.Level != test.level || f.Verdict != test.verdict || f.Level != "good" && f.Next == "" && test.s.Process.Verdict == "" {
			t.Errorf("want %s, %s: %+v", test.level, test.verdict, f)
		}
	}
}

func collector(t *testing.T) *gc.Collector {
	t.Helper()
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestADiagnosisKeepsWhatItSaw: a finalizer that blocks at first is named, although it returns later. What a gauge reads is not counted.
func TestADiagnosisKeepsWhatItSaw(t *testing.T) {
	c, block := collector(t), make(chan struct{})
	defer gc.Watch(c, func() int64 { return 7 << 20 }).Close()
	c.Account(5 << 20)
	runtime.SetFinalizer(new([32]byte), func(*[32]byte) { <-block })
	time.AfterFunc(2500*time.Millisecond, func() { close(block) }) // a cycle waits 2 s for it
	d := debug.Diagnose(t.Context(), c, 600*time.Millisecond)
	row := fmt.Sprintf("%-38s %12[2]s %12[2]s %12[2]s\n", "  outside Go: counted by the collector", "5.00 MiB")
	if d.Verdict != verdict.Blocked || !strings.Contains(d.String(), row) {
		t.Errorf("want %s, and %s%v", verdict.Blocked, row, d)
	}
}

// TestWhatCyclesFreeIsNoRetention, although Go's allocator keeps it right after them.
func TestWhatCyclesFreeIsNoRetention(t *testing.T) {
	healthy := gc.Finding{Level: verdict.Good, Verdict: verdict.Healthy}
	verdict.Publish(healthy) // as package auto does
	defer verdict.Publish(gc.Finding{})
	c := collector(t)
	godebug.FreeOSMemory()
	touched(128 << 20) // and dead
	if d := debug.Diagnose(t.Context(), c, 0); d.Verdict == verdict.Retention {
		t.Error(d)
	}
}

// touched returns memory that is resident.
//
//go:noinline
func touched(bytes int) []byte {
	b := make([]byte, bytes)
	for i := 0; i < bytes; i += 4 << 10 {
		b[i] = 1
	}
	return b
}

// TestADiagnosisNamesWhatGrew: the stacks that grew come after the verdict, that which grew most first.
func TestADiagnosisNamesWhatGrew(t *testing.T) {
	c := collector(t)
	var held [][]byte
	grown := make(chan struct{})
	go func() {
		defer close(grown)
		for i := range 64 {
			time.Sleep(20 * time.Millisecond)
			if held = append(held, growsMuch()); i%4 == 0 {
				held = append(held, growsLess())
			}
		}
	}()
	d := debug.Diagnose(t.Context(), c, 2*time.Second)
	<-grown
	_, stacks, _ := strings.Cut(d.String(), "grew by")
	if most, less := strings.Index(stacks, "growsMuch"), strings.Index(stacks, "growsLess"); d.Verdict != verdict.GoGrowth || most < 0 || less < most {
		t.Error(d)
	}
	runtime.KeepAlive(held)
}

//go:noinline
func growsMuch() []byte { return touched(1 << 20) }

//go:noinline
func growsLess() []byte { return touched(1 << 20) }
