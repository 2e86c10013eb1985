package trace_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/eagergc/eagergc/trace"
)

// A recorder writes events to a file, which every reader of Arrow streams can read.
func ExampleRecord() {
	dir, err := os.MkdirTemp("", "trace")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "app.arrows")

	recorder, err := trace.Record(path, &trace.Trace{Name: "app"}, trace.RecorderConfig{})
	if err != nil {
		log.Fatal(err)
	}
	recorder.Record(trace.Event{Time: 0, Kind: trace.Alloc, ID: 7, Bytes: 4096})
	recorder.Record(trace.Event{Time: 1000, Kind: trace.Drop, ID: 7, Bytes: 4096})
	if err := recorder.Close(); err != nil {
		log.Fatal(err)
	}

	recording, err := trace.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range recording.Events {
		fmt.Println(e.Time, e.Kind, e.ID, e.Bytes)
	}
	// Output:
	// 0 alloc 7 4096
	// 1000 drop 7 4096
}
