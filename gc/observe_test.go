package gc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/trace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// An events handler keeps what it is told.
type events struct {
	mu    sync.Mutex
	level slog.Level // the least that it takes
	all   []event
}

type event struct {
	text  string
	level slog.Level
	attrs map[string]any
}

func (h *events) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }
func (h *events) WithAttrs([]slog.Attr) slog.Handler           { panic("not used") }
func (h *events) WithGroup(string) slog.Handler                { panic("not used") }

func (h *events) Handle(_ context.Context, r slog.Record) error {
	e := event{r.Message, r.Level, make(map[string]any)}
	r.Attrs(func(a slog.Attr) bool {
		e.attrs[a.Key] = a.Value.Any()
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
	return nil
}

func (h *events) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// of returns the events of one text and, if trigger is not "", one trigger.
func (h *events) of(text, trigger string) (all []event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.all {
		if e.text == text && (trigger == "" || e.attrs["trigger"] == trigger) {
			all = append(all, e)
		}
	}
	return all
}

// has reports whether every one of want is an attribute.
func (e event) has(want map[string]any) bool {
	for k, v := range want {
		if e.attrs[k] != v {
			return false
		}
	}
	return true
}

func TestLogTellsOfCyclesRefusalsAndPolicies(t *testing.T) {
	quiet(t)
	h := new(events)
	h.level = slog.LevelDebug
	c := newCollector(t, Config{Policy: &scripted{decide: func(p policy.Point) policy.Decision {
		if p.Request == 40 {
			return policy.Decision{Action: policy.Block, Reason: "forty"}
		}
		return policy.Decision{}
	}}, Limit: 100, Log: slog.New(h)})
	ownFunc(c, new(thing), 30, func() {})
	ownFunc(c, new(thing), 40, func() {}) // the policy collects the 30 first
	ownFunc(c, new(thing), 90, func() {}) // 40 + 90 do not fit
	c.SetPolicy(nil)
	c.Collect(policy.TriggerExplicit)
	waitFor(t, time.Minute, func() bool {
		runtime.GC() // a sentinel made during a cycle outlives it
		return len(h.of(logEnded, "natural")) > 0
	})

	for _, want := range []struct {
		text, trigger string
		attrs         map[string]any
	}{
		{logBegan, "policy", map[string]any{"action": "block", "reason": "forty", "space": "host", "live_bytes": int64(30), "limit_bytes": int64(100)}},
		{logEnded, "policy", map[string]any{"action": "block", "reason": "forty", "freed_bytes": int64(30), "objects": int64(1), "live_after_bytes": int64(0)}},
		{logRefused, "", map[string]any{"space": "host", "live_bytes": int64(40), "limit_bytes": int64(100)}},
		{logEnded, "refusal", map[string]any{"freed_bytes": int64(40), "objects": int64(1)}},
		{logSwitched, "", map[string]any{"from": "scripted", "to": "never"}},
		{logEnded, "explicit", map[string]any{"freed_bytes": int64(90), "reason": ""}},
	} {
		got := h.of(want.text, want.trigger)
		if len(got) != 1 || !got[0].has(want.attrs) || got[0].level != slog.LevelDebug {
			t.Errorf("%s %s: %v, want one with %v", want.text, want.trigger, got, want.attrs)
		}
	}
	for _, e := range h.of(logEnded, "policy") {
		if d, x := e.attrs["duration"].(time.Duration), e.attrs["exposed"].(time.Duration); d <= 0 || x < 0 || x > d {
			t.Errorf("took %v, of which %v exposed", d, x)
		}
	}
}

func TestLogTellsOfPanicsAndOnlyWhatItsHandlerTakes(t *testing.T) {
	h := &events{level: slog.LevelError}
	c := newCollector(t, Config{Policy: &scripted{decide: func(policy.Point) policy.Decision { panic("of the policy") }}, Log: slog.New(h)})
	ownFunc(c, new(thing), 1, func() { panic("of release") })
	waitFor(t, time.Minute, func() bool {
		c.Collect(policy.TriggerExplicit) // on a busy machine the release may come after the cycle
		return len(h.of(logPanicked, "")) == 2
	})
	got := h.of(logPanicked, "")
	if len(h.all) != 2 {
		t.Fatalf("%v", h.all)
	}
	for i, want := range []string{"of the policy", "of release"} {
		if err, ok := got[i].attrs["error"].(error); !ok || !strings.Contains(err.Error(), want) || got[i].level != slog.LevelError {
			t.Errorf("%v, want %q", got[i], want)
		}
	}
}

// capture runs f while the program is being traced, and returns the trace as go
// tool trace lists its events.
func capture(t *testing.T, f func()) string {
	t.Helper()
	if trace.IsEnabled() {
		t.Skip("the test itself is being traced")
	}
	var out bytes.Buffer
	if err := trace.Start(&out); err != nil {
		t.Fatal(err)
	}
	f()
	trace.Stop()
	file := filepath.Join(t.TempDir(), "trace.out")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := exec.Command("go", "tool", "trace", "-d=parsed", file).CombinedOutput()
	if err != nil {
		t.Fatalf("go tool trace: %v\n%s", err, list)
	}
	return string(list)
}

func TestCyclesAreTasksOfAProgramTrace(t *testing.T) {
	if testing.Short() {
		t.Skip("runs go tool trace")
	}
	c := newCollector(t, Config{Policy: policy.MustParse("always").New()})
	list := capture(t, func() {
		ownFunc(c, new(thing), 64, func() { awaitHeld(c) })
		c.Sync(&WaitPlace{Name: "step 1"}, func() error { return nil })
	})
	id := regexp.MustCompile(`Task=(\d+) Category="trigger" Message="policy sync point"`).FindStringSubmatch(list)
	if id == nil {
		t.Fatalf("the trace has no task of a cycle that the policy asked for:\n%s", list)
	}
	for _, want := range []string{
		`TaskBegin .* ID=# .*"eagergc cycle"`,
		`RegionBegin .*"eagergc wait"`,
		`Category="place" Message="step 1"`,
		`RegionEnd .*"eagergc wait"`,
		`RegionBegin .* Task=# Type="eagergc mark"`,
		`RegionEnd .* Task=# Type="eagergc mark"`,
		`RegionBegin .* Task=# Type="eagergc settle"`,
		`RegionEnd .* Task=# Type="eagergc settle"`,
		`Task=# Category="freed" Message="64"`,
		`TaskEnd .* ID=# .*"eagergc cycle"`,
		`RegionBegin .* Task=# Type="eagergc hold"`,
		`RegionEnd .* Task=# Type="eagergc hold"`,
	} {
		if !regexp.MustCompile(strings.ReplaceAll(want, "#", id[1])).MatchString(list) {
			t.Errorf("the trace lacks %s", want)
		}
	}
}

// awaitHeld waits until the cycle under way holds a caller.
func awaitHeld(c *Collector) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		c.mu.Lock()
		held := c.current.Load().held != noOne
		c.mu.Unlock()
		if held {
			return
		}
	}
}

// After Close the log is told nothing more: not of releases that come late, of cycles of the
// runtime's own, nor of a finalizer that blocks.
func TestTheLogIsToldNothingAfterClose(t *testing.T) {
	h := &events{level: slog.LevelDebug}
	c := embed(t, Config{Log: slog.New(h)})
	began, blocks := make(chan bool), make(chan bool)
	ownFunc(c, new(thing), 1<<20, func() { close(began); <-blocks; panic("late") })
	ownFunc(c, new(thing), 1<<20, func() {})
	c.Collect(policy.TriggerExplicit)
	<-began
	c.Close()
	told := h.count()
	if told == 0 {
		t.Fatal("nothing was logged before")
	}
	close(blocks)
	var released atomic.Bool
	ownFunc(c, new(thing), 1<<20, func() { released.Store(true) })
	waitFor(t, 20*time.Second, func() bool {
		runtime.GC()
		c.Reap()
		return released.Load() && c.Err() != nil && c.Stats().Pending == 0
	})
	if n := h.count(); n != told {
		t.Errorf("%d words after Close", n-told)
	}
}

// A log changes nothing: who listens to libraries and hears of none has no source for them.
func TestALogMakesNoSource(t *testing.T) {
	c := newCollector(t, Config{Log: slog.New(&events{level: slog.LevelDebug})})
	c.mu.Lock()
	c.listening = func() {} // to none
	c.mu.Unlock()
	c.Collect(policy.TriggerExplicit)
	if n := len(c.Snapshot().Sources); n != 0 {
		t.Errorf("%d sources", n)
	}
}

// TestAProgramTraceNamesWhatCyclesDo, and waits go on as they do without one.
func TestAProgramTraceNamesWhatCyclesDo(t *testing.T) {
	if trace.IsEnabled() {
		t.Skip("the test itself is being traced")
	}
	var out bytes.Buffer
	if err := trace.Start(&out); err != nil {
		t.Skip(err)
	}
	c := newCollector(t, Config{Policy: policy.MustParse("always").New()})
	ownFunc(c, new(thing), 64_123, func() { awaitHeld(c) })
	bad := errors.New("device lost")
	waits := 0
	err := c.Sync(&WaitPlace{Name: "the place of a step"}, func() error { waits++; return bad })
	c.Close() // what a cycle freed is traced once it has let go of its callers
	trace.Stop()
	if err != bad || waits != 1 {
		t.Errorf("Sync waited %d times, and returned %v", waits, err)
	}
	for _, want := range []string{"eagergc cycle", "eagergc mark", "eagergc settle", "eagergc hold", "eagergc wait", "the place of a step", "policy sync point", "64123"} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("the trace lacks %q", want)
		}
	}
}

// TestAnEventSaysHowFullTheFullestIs, wherever it stands in the list.
func TestAnEventSaysHowFullTheFullestIs(t *testing.T) {
	c := newOn(newPuppet(), Config{Idle: -1}, policy.Spec{}.New())
	defer c.Close()
	for _, s := range []pressure.Sample{
		{Space: pressure.Pinned, Live: 10, Limit: 100}, {Space: pressure.Device(0), Live: 300, Limit: 1000}, {Space: pressure.Host, Live: 20, Limit: 100},
	} {
		c.NewGate(&level{s})
	}
	h := new(events)
	slog.New(h).LogAttrs(context.Background(), slog.LevelInfo, "", c.topAttrs()...)
	if e := h.all[0]; !e.has(map[string]any{"space": "device0", "live_bytes": int64(300), "limit_bytes": int64(1000)}) {
		t.Errorf("%v", e)
	}
}

// TestTheLogIsToldOfEachLevel that its handler takes, of failures aloud but of the first alone, and a panic of its own is a failure.
func TestTheLogIsToldOfEachLevel(t *testing.T) {
	before := slog.Default()
	aloud := &events{level: slog.LevelInfo}
	slog.SetDefault(slog.New(aloud))
	defer slog.SetDefault(before)
	c := newOn(newPuppet(), Config{Idle: -1}, policy.Spec{}.New())
	defer c.Close()
	c.failed(errors.New("first"))
	c.failed(errors.New("second"))
	if got := aloud.of(logPanicked, ""); len(got) != 1 || got[0].level != slog.LevelError || got[0].attrs["error"].(error).Error() != "first" || c.Stats().Failures != 2 || c.Err().Error() != "first" {
		t.Errorf("logged %+v, %d failures, %v", got, c.Stats().Failures, c.Err())
	}
	c.debug("debug", func() []slog.Attr { t.Error("attributes that reach nobody"); return nil })
	c.say(logEntry{level: slog.LevelDebug, text: "debug", aloud: true})
	c.say(logEntry{level: slog.LevelWarn, text: "not aloud"})
	c.say(logEntry{level: slog.LevelWarn, text: "aloud", aloud: true})
	own := &events{level: slog.LevelDebug}
	c.log = slog.New(own)
	c.failed(errors.New("third"))
	c.debug("debug", func() []slog.Attr { return []slog.Attr{slog.Int("n", 5)} })
	c.say(logEntry{level: slog.LevelWarn, text: "to its own", aloud: true})
	if aloud.count() != 2 || own.count() != 3 || len(own.of(logPanicked, "")) != 1 || !own.of("debug", "")[0].has(map[string]any{"n": int64(5)}) {
		t.Errorf("aloud %+v, to its own %+v", aloud.all, own.all)
	}
	c.log, c.err = slog.New(brokenHandler{}), nil
	c.say(logEntry{level: slog.LevelWarn})
	c.say(logEntry{level: slog.LevelWarn})
	if err := c.Err(); err == nil || err.Error() != "gc: the log panicked: no log" || c.Stats().Failures != 5 {
		t.Errorf("%v, %d failures", err, c.Stats().Failures)
	}
}
