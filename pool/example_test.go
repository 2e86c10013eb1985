package pool_test

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A service whose requests take memory that no handler frees: a gibibyte goes
// through a pool of 64 MiB.
func Example_service() {
	collector, err := gc.New(gc.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer collector.Close()
	memory, err := pool.New(pool.Config{
		Collector: collector,
		Limits:    pressure.Limits{Hard: pressure.Limit{Bytes: 64 << 20}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer memory.Close()

	handle := func(w http.ResponseWriter, r *http.Request) {
		samples, err := array.New[float32](memory, 1<<20) // 4 MiB
		switch {
		case errors.Is(err, pool.ErrOutOfMemory): // all of it is reachable: too many requests at once
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if err := samples.Fill(0.5); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, samples.Len(), "samples")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/render", handle)
	mux.Handle("/debug/eagergc/", debug.Handler(collector, memory))

	answered := 0
	for range 256 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/render", nil))
		if w.Code == http.StatusOK {
			answered++
		}
	}
	fmt.Println("answered:", answered)
	fmt.Println("within the limit:", memory.Stats().LivePeak <= 64<<20)
	// Output:
	// answered: 256
	// within the limit: true
}

// A program that records itself: the pool tells of memory, the collector of
// cycles, decisions and waits. Under the policy always there is a cycle at each
// wait, so that the recording dates each drop to within one step. The file is for
// replay compare, pandas and the like.
func Example_recording() {
	dir, err := os.MkdirTemp("", "recording")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "app.arrows")

	recorder, err := trace.Record(path, &trace.Trace{Name: "app"}, trace.RecorderConfig{})
	if err != nil {
		log.Print("goes on without a recording: ", err) // a nil recorder is off
	}
	collector, err := gc.New(gc.Config{Policy: policy.MustParse("always").New(), Caps: gc.Caps{Cycles: 1}, Recorder: recorder})
	if err != nil {
		log.Fatal(err)
	}
	memory, err := pool.New(pool.Config{Collector: collector, Trace: recorder})
	if err != nil {
		log.Fatal(err)
	}
	step := &gc.WaitPlace{Name: "step"}
	for range 10 {
		if _, err := array.New[float32](memory, 1<<18); err != nil { // 1 MiB, dropped at once
			log.Fatal(err)
		}
		if err := memory.Sync(step, func() error { return nil }); err != nil {
			log.Fatal(err)
		}
	}
	memory.Close()
	collector.Close()
	if err := recorder.Close(); err != nil {
		log.Fatal(err)
	}

	recorded, err := trace.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	var bytes pressure.Bytes
	count := make(map[trace.Kind]int)
	for _, e := range recorded.Events {
		if count[e.Kind]++; e.Kind == trace.Alloc {
			bytes += pressure.Bytes(e.Bytes)
		}
	}
	fmt.Println(count[trace.Alloc], "allocations of", bytes, "and", count[trace.Sync], "waits")
	// Output: 10 allocations of 10.00 MiB and 10 waits
}
