package auto_test

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"github.com/eagergc/eagergc/gc/auto"
	"github.com/eagergc/eagergc/gc/debug"
)

// The import needs no other code. This program also prints what its memory is.
func Example() {
	fmt.Print(debug.Diagnose(context.Background(), auto.Collector(), 2*time.Second))
}

// Many programs around C libraries have a ticker for what Go's collector does not see:
//
//	go func() {
//		for range time.Tick(10 * time.Second) {
//			debug.FreeOSMemory()
//		}
//	}()
//
// It runs where there is nothing to free, and comes too late where much is. This takes its place.
func ExampleStart() {
	stop := auto.Start(auto.Options{Limit: 2 << 30})
	defer stop()
	// ... the program ...
}

// Memory that stays leaves a heap profile, which says what holds it.
func ExampleOptions_held() {
	defer auto.Start(auto.Options{Held: func(bytes int64, _ time.Duration) {
		file, err := os.CreateTemp("", fmt.Sprintf("held-%d-*.heap", bytes))
		if err != nil {
			return
		}
		defer file.Close()
		_ = pprof.WriteHeapProfile(file) // a profile more or less
	}})()
}
