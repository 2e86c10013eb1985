package gc

import (
	"log/slog"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

func mustPanic(t *testing.T, want string, do func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if e, ok := recover().(string); !ok || !strings.Contains(e, want) {
			t.Errorf("panics with %q, want %q", e, want)
		}
	}()
	do()
}

type file struct {
	fd   uintptr
	name string
}

func (f *file) close(uintptr) { f.fd = 0 }

// TestMisuseIsRefusedAtTheCall: what would leak, or count wrong, for ever.
func TestMisuseIsRefusedAtTheCall(t *testing.T) {
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	f, free := &file{fd: 3, name: "x"}, func(uintptr) {}
	type pair struct {
		fd uintptr
		of *file
	}
	for what, tc := range map[string]struct {
		want string
		do   func()
	}{
		"owner as argument":     {"an argument of type *gc.file that refers to the owner", func() { Own(c, f, 1, func(*file) {}, f) }},
		"pointer into it":       {"refers to the owner", func() { Own(c, f, 1, func(*string) {}, &f.name) }},
		"owner in a struct":     {"refers to the owner", func() { Own(c, f, 1, func(pair) {}, pair{3, f}) }},
		"owner in an interface": {"refers to the owner", func() { Own(c, f, 1, func(any) {}, any(f)) }},
		"owner in an array":     {"refers to the owner", func() { Own(c, f, 1, func([2]pair) {}, [2]pair{{}, {3, f}}) }},
		"first of an array":     {"refers to the owner", func() { Own(c, f, 1, func([2]pair) {}, [2]pair{{3, f}, {}}) }},
		"its last word":         {"refers to the owner", func() { Own(c, f, 1, func(*byte) {}, (*byte)(unsafe.Add(unsafe.Pointer(f), unsafe.Sizeof(*f)-1))) }},
		"method value":          {"a method value of the owner", func() { Own(c, f, 1, f.close, 3) }},
		"counted nil":           {"nil owner", func() { Count(c, (*file)(nil), 1) }},
		"nil release":           {"nil release", func() { Own[file, uintptr](c, f, 1, nil, 3) }},
		"nil owner":             {"nil owner", func() { Own(c, (*file)(nil), 1, free, 3) }},
		"negative bytes":        {"with -1 bytes", func() { Own(c, f, -1, free, 3) }},
		"absurd bytes":          {"want 0 to", func() { Own(c, f, math.MaxInt64, free, 3) }},
		"tiny owner":            {"no identity", func() { Own(c, new(int64), 1, free, 3) }},
		"empty owner":           {"no identity", func() { Own(c, new(struct{}), 1, free, 3) }},
		"negative limit":        {"SetLimit with -1", func() { c.SetLimit(-1) }},
		"negative account":      {"takes back 5 bytes, where only 0", func() { c.Account(-5) }},
		"absurd account":        {"Account with", func() { c.Account(math.MaxInt64) }},
		"absurdly less":         {"Account with", func() { c.Account(math.MinInt64) }},
		"resize":                {"Resize with -1", func() { Own(c, f, 1, free, 3).Resize(-1) }},
	} {
		t.Run(what, func(t *testing.T) { mustPanic(t, tc.want, tc.do) })
	}
	Own(c, f, 1, free, f.fd).Release()       // this is how
	Own(c, new(*file), 1, free, 3).Release() // 8 bytes, but a pointer
}

// TestANumberKeepsNothingAlive: the owner's address as a number is a usual key of a map with weak keys.
func TestANumberKeepsNothingAlive(t *testing.T) {
	var log events
	c := newCollector(t, Config{Policy: policy.Spec{}.New(), Log: slog.New(&log)})
	f := &file{fd: 3, name: "x"}
	key := uintptr(unsafe.Pointer(f))
	type keyed struct {
		key  uintptr
		name string
	}
	Own(c, f, 1, func(uintptr) {}, key).Release()
	Own(c, f, 1, func(keyed) {}, keyed{key, "x"}).Release()
	Own(c, f, 1, func([2]uintptr) {}, [2]uintptr{0, key}).Release()
	if len(log.of(logCaptured, "")) > 0 {
		t.Error("a number is taken for the owner")
	}
	Own(c, f, 1, func(uintptr) { f.fd = 0 }, 3).Release()
	if len(log.of(logCaptured, "")) == 0 {
		t.Error("a closure that has captured its owner is not logged")
	}
	t.Setenv(strictVariable, "1")
	strict := newCollector(t, Config{Policy: policy.Spec{}.New()})
	mustPanic(t, "captured its owner", func() { Own(strict, f, 1, func(uintptr) { f.fd = 0 }, 3) })
}

func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []Config{{Limit: -1}, {Limit: MaxBytes + 1}, {Caps: Caps{Cycles: -0.1}}, {Caps: Caps{Held: 1.1}}, {Caps: Caps{Cycles: math.NaN()}}} {
		if c, err := New(cfg); err == nil {
			c.Close()
			t.Errorf("%+v is no error", cfg)
		}
	}
}

// TestALimitAboveTheMachineIsToldOf, and in strict mode it panics.
func TestALimitAboveTheMachineIsToldOf(t *testing.T) {
	info, err := pressure.HostMemory()
	if err != nil {
		t.Skip(err)
	}
	t.Setenv(strictVariable, "1")
	mustPanic(t, logLimit, func() { New(Config{Limit: info.Total + 1}) })
}

func TestStrictModeContainsNothing(t *testing.T) {
	t.Setenv(strictVariable, "1")
	c := newCollector(t, Config{Policy: &scripted{decide: func(policy.Point) policy.Decision { panic("a bug in the policy") }}})
	mustPanic(t, "a bug in the policy", func() { Own(c, new(thing), 1, func(int) {}, 0) })
	c.SetPolicy(nil)
	c.Collect(policy.TriggerExplicit) // no lock was left behind
}

func TestResizeAndAccountCount(t *testing.T) {
	quiet(t)
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	live := func() int64 { return c.Snapshot().Sources[0].Live }
	o := new(thing)
	h := Own(c, o, 100, func(int) {}, 0)
	for _, bytes := range []int64{300, 50, 0, 7} {
		if !h.Resize(bytes) || live() != bytes {
			t.Errorf("%d live, want %d", live(), bytes)
		}
	}
	c.Account(1000)
	c.Account(-300)
	if live() != 707 {
		t.Errorf("%d live, want 707", live())
	}
	if !h.Release() || h.Resize(9) || live() != 700 {
		t.Errorf("%d live, want 700, and no Resize after Release", live())
	}
	if (Handle{}).Resize(1) {
		t.Error("the zero handle was resized")
	}
}

// TestCyclesWaitForWhatIsAccounted: cleanups take it back, and that is the yield.
func TestCyclesWaitForWhatIsAccounted(t *testing.T) {
	quiet(t)
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	waitFor(t, 20*time.Second, func() bool { // again where one took too long: the wait is bounded
		for range 100 {
			c.Account(10)
			accountedOwner(c)
		}
		live := c.Snapshot().Sources[0].Live
		return c.Collect(policy.TriggerExplicit).Freed == live
	})
	if got := c.Collect(policy.TriggerExplicit).Freed; got != 0 {
		t.Errorf("the next cycle is credited with %d bytes again", got)
	}
}

func TestDefaultIsOne(t *testing.T) {
	t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", "123M")
	if defaultLimit() != 123e6 {
		t.Errorf("limit %d", defaultLimit())
	}
	t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", "")
	if l := defaultLimit(); l <= 0 && hostMemoryIsKnown() {
		t.Errorf("limit %d", l)
	}
	if first, second := Default(), Default(); first != second {
		t.Error("two collectors")
	}
}

func hostMemoryIsKnown() bool { _, err := pressure.HostMemory(); return err == nil }

//go:noinline
func accountedOwner(c *Collector) {
	runtime.AddCleanup(new(thing), func(bytes int64) { c.Account(-bytes) }, 10)
}

// TestWhatLiesBesideTheOwnerIsNotTheOwner: right before it and right behind, as an argument and captured.
func TestWhatLiesBesideTheOwnerIsNotTheOwner(t *testing.T) {
	t.Setenv(strictVariable, "1") // what would be logged panics
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	files := new([3]file)
	for _, beside := range []*file{&files[0], &files[2]} {
		Own(c, &files[1], 1, func(*file) {}, beside).Release()
		Own(c, &files[1], 1, func(int) { beside.fd = 1 }, 0).Release()
	}
	Own(c, &files[1], 1, func(*byte) {}, (*byte)(unsafe.Add(unsafe.Pointer(&files[1]), -1))).Release()
	runtime.KeepAlive(files)
}

// TestPointersOfAType: where the garbage collector looks.
func TestPointersOfAType(t *testing.T) {
	const word = unsafe.Sizeof(uintptr(0))
	type inner struct {
		_ int32
		_ *int
	}
	for of, want := range map[reflect.Type][]uintptr{
		reflect.TypeFor[int](): nil, reflect.TypeFor[uintptr](): nil, reflect.TypeFor[[5]float64](): nil, reflect.TypeFor[struct{}](): nil, reflect.TypeFor[[0]*int](): nil,
		reflect.TypeFor[*int](): {0}, reflect.TypeFor[unsafe.Pointer](): {0}, reflect.TypeFor[chan int](): {0}, reflect.TypeFor[func()](): {0}, reflect.TypeFor[map[int]int](): {0},
		reflect.TypeFor[[]int](): {0}, reflect.TypeFor[string](): {0}, reflect.TypeFor[any](): {word}, reflect.TypeFor[error](): {word},
		reflect.TypeFor[inner](): {word}, reflect.TypeFor[[2]inner](): {word, 3 * word},
		reflect.TypeFor[struct {
			a int
			b inner
			c any
			d [2]string
		}](): {2 * word, 4 * word, 5 * word, 7 * word},
	} {
		if got := findPointers(nil, of, 0); !slices.Equal(got, want) || hasPointers(of) != (want != nil) {
			t.Errorf("%v: %d, want %d", of, got, want)
		}
	}
}
