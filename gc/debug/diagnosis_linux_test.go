package debug

import (
	"regexp"
	"runtime"
	godebug "runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/internal/verdict"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// diagnose runs Diagnose. Meanwhile C's allocator says what it keeps, before the cycles, after them and at the end. After each of
// these readings a step runs.
func diagnose(t *testing.T, c *gc.Collector, window time.Duration, kept int64, steps ...func()) Diagnosis {
	t.Helper()
	defer gc.SetAllocatorStats(func() (int64, int64) { return -1, -1 })
	n := 0
	gc.SetAllocatorStats(func() (int64, int64) {
		if n++; n <= len(steps) && steps[n-1] != nil {
			steps[n-1]()
		}
		return int64(n) << 10, kept
	})
	return Diagnose(t.Context(), c, window)
}

func newCollector(t *testing.T) *gc.Collector {
	t.Helper()
	c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
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

// TestADiagnosisKeepsWhatItSaw: a finalizer that blocks at first is named, although it returns later. What a gauge reads is not counted.
func TestADiagnosisKeepsWhatItSaw(t *testing.T) {
	c, block := newCollector(t), make(chan struct{})
	defer gc.Watch(c, func() int64 { return 7 << 20 }).Close()
	c.Account(5 << 20)
	runtime.SetFinalizer(new([32]byte), func(*[32]byte) { <-block })
	time.AfterFunc(2500*time.Millisecond, func() { close(block) }) // a cycle waits 2 s for it
	d := Diagnose(t.Context(), c, 600*time.Millisecond)
	if golden(t, "blocked.txt", withoutSizes(d)); d.Verdict != verdict.Blocked {
		t.Error(d)
	}
}

// TestDiagnoses: each verdict, by what package gc/auto says and by what happens meanwhile. The text of one is in the digest, but for
// the numbers of this process.
func TestDiagnoses(t *testing.T) {
	if info, _ := godebug.ReadBuildInfo(); slices.Contains(info.Settings, godebug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector frees memory of its own where Go allocates")
	}
	defer godebug.SetGCPercent(godebug.SetGCPercent(10000)) // no cycle of Go's own below 400 MiB
	defer verdict.Publish(gc.Finding{})
	c := newCollector(t)
	c.Account(5 << 20)
	c.Listen()
	one, many := pressure.NewCounter("libone"), pressure.NewCounter("libmany")
	one.Add(2048)
	for range 1234 {
		many.Add(2048)
	}
	var mapped, held []byte
	var fragments [][]byte
	grow := func(outside, golang int) func() {
		return func() { mapped, held = mmapped(t, outside), touched(golang) }
	}
	garbage := func() { touched(128 << 20) }
	frees := func() {
		for range 617 {
			many.Sub(2048)
		}
	}
	defer one.Sub(2048)
	fragment := func() { // a heap of 128 MiB, of which each page is in use
		for i := range 128 << 10 {
			if b := make([]byte, 1<<10); i%8 == 0 {
				fragments = append(fragments, b)
			}
		}
		runtime.GC()
	}
	healthy, near := gc.Finding{Level: verdict.Good, Verdict: verdict.Healthy}, gc.Finding{Level: verdict.Watch, Verdict: verdict.NearLimit, Reason: "It is near."}
	for name, test := range map[string]struct {
		auto   gc.Finding
		kept   int64  // MiB, by C's allocator
		before func() // Diagnose
		steps  []func()
		level  string
		want   string
	}{
		"healthy":               {level: verdict.Good, want: verdict.Healthy},
		"C keeps much":          {kept: 1 << 20, level: verdict.Watch, want: verdict.Retention},
		"C keeps little":        {kept: 15, level: verdict.Good, want: verdict.Healthy},
		"C keeps a small share": {kept: 40, before: grow(256<<20, 0), level: verdict.Good, want: verdict.Healthy},
		"Go keeps much":         {before: fragment, level: verdict.Watch, want: verdict.Retention},
		"Go keeps what the cycles free, which they do anyway": {auto: healthy, before: garbage, level: verdict.Good, want: verdict.Healthy},
		"garbage":                 {before: garbage, steps: []func(){frees, frees}, level: verdict.Watch, want: verdict.GarbageLag},
		"growth outside":          {before: garbage, steps: []func(){nil, grow(96<<20, 32<<20)}, level: verdict.Bad, want: verdict.OutsideGrowth},
		"growth of Go":            {steps: []func(){nil, grow(32<<20, 64<<20)}, level: verdict.Bad, want: verdict.GoGrowth},
		"a little growth":         {steps: []func(){nil, grow(3<<20, 0)}, level: verdict.Good, want: verdict.Healthy},
		"growth that auto denies": {auto: healthy, steps: []func(){nil, grow(64<<20, 0)}, level: verdict.Good, want: verdict.Healthy},
		"growth that auto sees":   {auto: gc.Finding{Level: verdict.Watch, Verdict: verdict.GoGrowth, Reason: "It grows."}, kept: 1 << 20, level: verdict.Watch, want: verdict.GoGrowth},
		"auto's limit":            {auto: gc.Finding{Level: verdict.Bad, Verdict: verdict.OverLimit, Reason: "It is over."}, kept: 1 << 20, level: verdict.Bad, want: verdict.OverLimit},
		"near auto's limit":       {auto: near, before: garbage, level: verdict.Watch, want: verdict.NearLimit},
		"near it, and C keeps":    {auto: near, kept: 1 << 20, level: verdict.Watch, want: verdict.Retention},
	} {
		verdict.Publish(test.auto)
		godebug.FreeOSMemory()
		if test.before != nil {
			test.before()
		}
		d := diagnose(t, c, 1, test.kept<<20, test.steps...)
		reason := "Of "
		if test.auto.Verdict == test.want {
			reason = strings.TrimLeft(test.auto.Reason+" Of ", " ")
		}
		grew := strings.Contains(d.String(), "\ngrew by ")
		if d.Verdict != test.want || d.Level != test.level || !strings.HasPrefix(strings.TrimLeft(d.Reason, " "), reason) || d.Next != verdict.Next[test.want] ||
			grew != strings.Contains(d.Verdict, "growth") || !strings.HasPrefix(d.String(), d.Verdict+"\n"+d.Reason+"\nNext: "+d.Next+"\n\n") {
			t.Errorf("%s: want %s, %s: %+v\n%v", name, test.level, test.want, d.Finding, d)
		}
		size := func(row string) (bytes int64) { // at the end
			l, _ := pressure.ParseLimit(regexp.MustCompile(row + `.* {2,}(.+ .*B)\n`).FindStringSubmatch(d.String())[1])
			return l.Bytes
		}
		switch sum := size("objects in the Go heap") + size("kept by the Go runtime") + size("other of the Go runtime") + size("outside Go: all"); {
		case name == "garbage":
			golden(t, "diagnosis.txt", withoutSizes(d))
		case name == "growth outside" && max(sum-size("resident, of the process"), size("resident, of the process")-sum) > 1<<20:
			t.Errorf("the parts of the table are %v: %v", pressure.Bytes(sum), d)
		}
		runtime.KeepAlive(fragments)
		runtime.KeepAlive(held)
		if fragments, held = nil, nil; mapped != nil {
			_ = syscall.Munmap(mapped)
			mapped = nil
		}
	}
}

// withoutSizes returns a diagnosis without the sizes of this process.
func withoutSizes(d Diagnosis) []byte {
	sizes := regexp.MustCompile(`(?m)(^Of|^F.*Of|freed|grew by|kept|^(?:resident|  objects|  free|  other|  outside Go: all).*?)(?: +[0-9.]+ (?:[KMG]i)?B)+`)
	return sizes.ReplaceAll([]byte(d.Level+" "+d.See+" "+d.String()), []byte("$1 ..."))
}

// mmapped returns resident memory outside the Go heap.
func mmapped(t *testing.T, bytes int) []byte {
	if bytes == 0 {
		return nil
	}
	data, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < bytes; i += 4 << 10 {
		data[i] = 1
	}
	return data
}

// TestADiagnosisNamesWhatGrew: the five stacks that grew most since the first cycles come after the verdict, that which grew most first.
func TestADiagnosisNamesWhatGrew(t *testing.T) {
	defer verdict.Publish(gc.Finding{})
	verdict.Publish(gc.Finding{Level: verdict.Bad, Verdict: verdict.GoGrowth}) // or it would depend on what the race detector holds
	c, stop := newCollector(t), make(chan struct{})
	defer close(stop)
	var held [][]byte
	grow := func(goroutines int) {
		for range goroutines {
			go func() { <-stop }()
		}
		held = append(held,
			touched(6<<20),
			touched(12<<20),
			touched(32<<20),
			touched(4<<20),
			touched(8<<20),
		)
	}
	grow(100)
	godebug.FreeOSMemory()
	object := new([32]byte)
	runtime.SetFinalizer(object, func(*[32]byte) { grow(2048) }) // by the last cycles
	d := diagnose(t, c, 1, 0, nil, func() { runtime.KeepAlive(object); object = nil })
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^grew by (.*) and (\d+) goroutines:\n\t\S+ (?:\S+/diagnosis_linux_test.go|\S+/runtime/\w+.go):\d+$`).FindAllStringSubmatch(d.String(), -1) {
		got = append(got, m[1]+", "+m[2])
	}
	want := []string{"32.00 MiB, 0", "0 B, 2048", "12.00 MiB, 0", "8.00 MiB, 0", "6.00 MiB, 0"}
	if !slices.Equal(got, want) {
		t.Errorf("%q: %v", got, d)
	}
	runtime.KeepAlive(held)
}
