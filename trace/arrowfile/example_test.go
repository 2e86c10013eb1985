package arrowfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
)

// A program records what it does, and reads it back.
func ExampleRecord() {
	dir, err := os.MkdirTemp("", "record")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "run.arrows")

	recorder, err := arrowfile.Record(path, &trace.Trace{Name: "app"}, trace.RecorderConfig{})
	if err != nil {
		log.Print("goes on without a recorder: ", err) // a nil recorder is off
	}
	item := recorder.Label("loss.item()")
	now := func() int64 { return int64(recorder.Now()) }
	recorder.Record(trace.Event{Time: now(), Kind: trace.Alloc, ID: 1, Bytes: 1 << 20, Space: pressure.Device(0)})
	recorder.Record(trace.Event{Time: now(), Kind: trace.Sync, Space: pressure.Device(0), Aux: item})
	recorder.Record(trace.Event{Time: now(), Kind: trace.Free, ID: 1, Bytes: 1 << 20, Space: pressure.Device(0)})
	if err := recorder.Close(); err != nil {
		log.Fatal(err)
	}

	t, err := arrowfile.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range t.Events {
		fmt.Printf("%v %v %d %q\n", e.Kind, e.Space, e.Bytes, t.Label(e))
	}
	// Output:
	// alloc device0 1048576 ""
	// sync device0 0 "loss.item()"
	// free device0 1048576 ""
}

// A file that was cut off gives what its whole batches hold, and says so.
func ExampleRead_truncated() {
	var file bytes.Buffer
	w, err := arrowfile.NewWriter(&file, &trace.Trace{})
	if err != nil {
		log.Fatal(err)
	}
	for id := range uint64(2) {
		if err := w.WriteBatch([]trace.Event{{Kind: trace.Alloc, ID: id, Bytes: 512}}, nil); err != nil {
			log.Fatal(err)
		}
	}
	t, err := arrowfile.Read(bytes.NewReader(file.Bytes()[:file.Len()-1])) // the last batch lacks a byte
	fmt.Println(errors.Is(err, arrowfile.ErrTruncated), len(t.Events))
	// Output: true 1
}
