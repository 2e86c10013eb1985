package zstd_test

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	_ "github.com/eagergc/eagergc/trace/formats/zstd"
)

func steady(n int) *trace.Trace {
	tr := &trace.Trace{Name: "steady", Labels: []string{"", "loss.item()"}, Meta: map[string]string{}}
	for i := range n {
		e := trace.Event{Time: int64(i) * 1000, ID: uint64(i + 1), Bytes: int64(i%7+1) << 20, Kind: trace.Alloc, Space: pressure.Device(0)}
		if i%10 == 9 {
			e = trace.Event{Time: e.Time, Kind: trace.Sync, Duration: time.Duration(i), Aux: 1}
		}
		tr.Record(e)
	}
	return tr
}

func bytesOf(t testing.TB, tr *trace.Trace) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	want := steady(10_000)
	file := bytesOf(t, want)
	if len(file) > 10*len(want.Events) {
		t.Errorf("%d events are packed in %d bytes", len(want.Events), len(file))
	}
	got, err := trace.Read(bytes.NewReader(file))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: other events", err)
	}
}

// TestUnpacked: an unpacked file has its texts and numbers as they are, and is read as any other.
func TestUnpacked(t *testing.T) {
	want := steady(100)
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, want)
	if err != nil {
		t.Fatal(err)
	}
	w.Unpacked()
	if _, err := w.WriteBatch(want.Events, want.Labels); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(file.Bytes(), []byte("loss.item()loss.item()")) || bytes.Contains(bytesOf(t, want), []byte("loss.item()loss.item()")) {
		t.Error("the file is packed, or the other one is not")
	}
	if got, err := trace.Read(&file); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: other events", err)
	}
}

// TestVersion1: the file was written by a program of before version 2.
func TestVersion1(t *testing.T) {
	want := steady(30)
	want.Meta = map[string]string{"app": "a test"}
	want.Record(trace.Event{Time: 1e9, Kind: trace.Cycle, Space: pressure.Pinned, Bytes: 5, Duration: 7, Aux: 2})
	want.Record(trace.Event{Time: 2e9, Kind: trace.Free, Space: pressure.Device(100), ID: 1, Bytes: 1 << 20, Aux: 1})
	got, err := trace.ReadFile("testdata/version1.arrows")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
