package fleet

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// childVariable makes the test's program a worker: it asks the fleet in a folder, with
// the cache beside it, and writes the answer there.
const childVariable = "EAGERGC_FLEET_TEST"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := worker(dir); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func worker(dir string) error {
	m, err := NewMapper(testPlan())
	if err != nil {
		return err
	}
	all, err := Sources(filepath.Join(dir, "jobs"))
	if err != nil {
		return err
	}
	l := Local{Mapper: m, Cache: NewCache(Folder(filepath.Join(dir, "cache"))), Workers: 1, Order: uint64(os.Getpid())}
	sum, err := l.Run(context.Background(), all)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := (&Answer{Plan: m.Plan, Partial: sum}).Encode(&text); err != nil {
		return err
	}
	return Folder(dir).Write(context.Background(), "answer", text.Bytes())
}

// Workers that share a cache are killed again and again; the answer stays the same. (In
// results/2026-11-22-fleet they are killed 100 times.)
func TestKilledWorkers(t *testing.T) {
	kills := 15
	if testing.Short() {
		kills = 4
	}
	dir := t.TempDir()
	if err := os.Rename(writeFleet(t, 40, 400), filepath.Join(dir, "jobs")); err != nil {
		t.Fatal(err)
	}
	m := newMapper(t, testPlan())
	whole, err := (&Local{Mapper: m}).Run(t.Context(), sources(t, filepath.Join(dir, "jobs")))
	if err != nil {
		t.Fatal(err)
	}
	start := func() *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), childVariable+"="+dir)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	workers := []*exec.Cmd{start(), start()}
	for range kills {
		time.Sleep(time.Duration(r.Float64() * float64(200*time.Millisecond))) // at any moment
		i := r.IntN(len(workers))
		_ = workers[i].Process.Kill() // it may have ended
		_ = workers[i].Wait()
		workers[i] = start()
	}
	for _, w := range workers {
		if err := w.Wait(); err != nil {
			t.Fatalf("a worker that nobody killed: %v", err)
		}
	}
	if got := string(read(t, filepath.Join(dir, "answer"))); got != encode(t, m, whole) {
		t.Error("another answer")
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "cache", "*", "*", "*"))
	if len(pages) < 40 {
		t.Errorf("%d pages of 40 jobs are kept", len(pages))
	}
}

// A large recording that takes long to read does not hold the small ones up, and its cells
// are replayed by all workers.
func TestLargeHoldsNobodyUp(t *testing.T) {
	all := sources(t, writeFleet(t, 12, 60))
	large := sources(t, writeFleet(t, 1, 60))[0]
	done, read := make(chan struct{}), large.Open
	large.Name, large.Bytes = "large", 1<<40
	large.Open = func() (File, error) {
		select {
		case <-done: // the others have been replayed
		case <-time.After(time.Minute):
			t.Error("the small recordings wait for the large one")
		}
		return read()
	}
	l := Local{Mapper: newMapper(t, testPlan()), Workers: 2, Memory: 1 << 20, Each: func(p Progress) {
		if p.Jobs == len(all) {
			close(done)
		}
	}}
	sum, err := l.Run(t.Context(), append([]Source{large}, all...))
	if err != nil || sum.Total().Jobs != 13 {
		t.Errorf("%v", err)
	}
	big := &Job{Features: Features{Allocs: 10_000_000}}
	if n := (&open{job: big}).share(); n != 1 {
		t.Errorf("%d cells of a large recording are taken at once", n)
	}
}
