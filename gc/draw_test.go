package gc

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var seeds = flag.Uint64("seed", 0, "run only the random schedule of this seed; 0: as many as the test says")

// A draw is where a random schedule comes from. Where it fails it tells its seed, and the steps that it took.
type draw struct {
	*testing.T
	rng   *rand.Rand
	seed  uint64
	steps []string
}

// schedules runs n random schedules, half of them where tests are short.
func schedules(t *testing.T, n int, run func(*draw)) {
	if testing.Short() {
		n /= 2
	}
	seed := uint64(time.Now().UnixNano())
	if *seeds != 0 {
		seed, n = *seeds, 1
	}
	for i := range uint64(n) {
		run(&draw{T: t, rng: rand.New(rand.NewPCG(seed+i, 0)), seed: seed + i})
	}
}

func (d *draw) Fatalf(format string, args ...any) {
	d.Helper()
	d.T.Fatalf("-seed %d, after %s:\n"+format, append([]any{d.seed, strings.Join(d.steps, ", ")}, args...)...)
}

func (d *draw) Fatal(args ...any) { d.Helper(); d.Fatalf("%v", args) }

// skipped is the panic of a step that can't be taken.
type skipped struct{}

// Skip ends the step.
func (d *draw) Skip(...any) { panic(skipped{}) }

// repeat takes random steps, and check after each.
func (d *draw) repeat(steps map[string]func(*draw), check func(*draw)) {
	var names []string
	for name := range steps {
		names = append(names, name)
	}
	slices.Sort(names)
	step := func(name string) {
		defer func() {
			if e := recover(); e != nil && e != (skipped{}) {
				panic(e)
			}
		}()
		steps[name](d)
		d.steps = append(d.steps, name)
	}
	for range between(d, 1, 60) {
		step(oneOf(d, names...))
		check(d)
	}
}

func between[N int | int64 | uint64](d *draw, low, high N) N {
	return low + N(d.rng.Int64N(int64(high-low)+1))
}

func oneOf[T any](d *draw, among ...T) T { return among[d.rng.IntN(len(among))] }

// leaked waits until no goroutine of this module is left over, and returns the stacks of those that stay.
func leaked() (stacks string) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		all := make([]byte, 1<<20)
		var left []string
		for _, g := range strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n") {
			if strings.Contains(g, "eagergc/gc.") && !strings.Contains(g, "gc.TestMain") && !strings.Contains(g, "testing.tRunner") {
				left = append(left, g)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return strings.Join(left, "\n\n")
		}
	}
}

func exit(code int) {
	if left := leaked(); left != "" && code == 0 {
		os.Stderr.WriteString("goroutines are left over:\n" + left + "\n")
		code = 1
	}
	os.Exit(code)
}

// beside runs f in a goroutine that wg waits for.
func beside(wg *sync.WaitGroup, f func()) {
	wg.Add(1)
	go func() {
		defer wg.Done()
		f()
	}()
}
