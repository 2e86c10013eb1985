package logs_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/logs"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// sample returns a recording: CuPy 14.2 on one H200, three solves by conjugate
// gradients with sorts on a second stream (cg), and a few sums (stock).
func sample(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readCuPy(t testing.TB, file []byte) *trace.Trace {
	t.Helper()
	tr, err := logs.ReadCuPy(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Validate(); err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestRecorded reads as many events as grep counts in the file.
func TestRecorded(t *testing.T) {
	file := sample(t, "cg.jsonl.gz")
	count := func(text string) int { return bytes.Count(file, []byte(text)) }
	tr := readCuPy(t, file)
	s := recording.StatsOf(tr)
	if s.Allocs != count(`"hook":"malloc"`)+1 || s.Drops != count(`"hook":"free"`) || s.Syncs != count(`"hook":"sync"`) || s.Wait <= 0 {
		t.Errorf("%+v", s)
	}
	if tr.Meta["cupy"] != "14.2.0" || tr.Meta["live_before_bytes"] != "8192" || tr.Start.Year() != 2026 {
		t.Errorf("from %v: %v", tr.Start, tr.Meta)
	}
	slices.Sort(tr.Labels)
	if want := []string{"", "Stream.synchronize", "asnumpy", "item"}; !slices.Equal(tr.Labels, want) {
		t.Errorf("labels %q, want %q", tr.Labels, want)
	}
	streams := map[uint32]int{}
	for _, e := range tr.Events {
		streams[e.Stream]++
		if e.Space != pressure.Device(0) {
			t.Fatalf("event in %v", e.Space)
		}
	}
	if len(streams) != 2 || s.PeakReserved < s.PeakReachable {
		t.Errorf("streams %v, reachable %d, reserved %d", streams, s.PeakReachable, s.PeakReserved)
	}
}

// TestStock reads what CuPy's own DebugPrintHook wrote: no times.
func TestStock(t *testing.T) {
	file := sample(t, "stock.jsonl")
	tr := readCuPy(t, file)
	if !tr.Start.IsZero() || !strings.HasPrefix(tr.Meta["clock"], "none") {
		t.Errorf("from %v: %v", tr.Start, tr.Meta)
	}
	last := tr.Events[len(tr.Events)-1]
	if n := bytes.Count(file, []byte("\n")); len(tr.Events) != n || last.Time != int64(n-1)*1000 {
		t.Errorf("%d events of %d lines, the last at %d ns", len(tr.Events), n, last.Time)
	}
}

func TestErrors(t *testing.T) {
	const malloc = `{"hook":"malloc","device_id":0,"size":8,"mem_size":512,"mem_ptr":4096,"t_ns":5000000000}` + "\n"
	for _, c := range []struct{ file, want string }{
		{"", "cupy: empty trace"},
		{"\n{", "line 2: unexpected end of JSON"},
		{`{"hook":"mmap"}`, `line 1: unknown hook "mmap"`},
		{`{"hook":"eagergc","version":2,"t_ns":1}`, "line 1: version 2"},
		{`{"hook":"malloc","mem_size":512}`, "line 1: malloc without mem_ptr"},
		{`{"hook":"malloc","device_id":-1}`, "line 1: device_id -1"},
		{`{"hook":"malloc","mem_size":-512,"mem_ptr":1}`, "line 1: -512 bytes"},
		{`{"hook":"sync"}`, "line 1: sync without t_ns"},
		{`{"hook":"sync","t_ns":1,"dur_ns":-1}`, "line 1: lasts -1 ns"},
		{malloc + malloc, "line 2: allocation of address 0x1000, which line 1 allocated"},
		{malloc + `{"hook":"free","mem_size":1024,"mem_ptr":4096,"t_ns":5000000001}`, "line 2: free of 1024 bytes"},
		{malloc + `{"hook":"free","mem_size":512,"mem_ptr":4096}`, "line 2: some lines have t_ns"},
		{malloc + `{"hook":"free","mem_size":512,"mem_ptr":4096,"t_ns":1}`, "line 2: time goes backwards"},
		{`{"hook":"free","mem_size":512,"mem_ptr":4096,"t_ns":-1}`, "line 1: t_ns -1"},
	} {
		if _, err := logs.ReadCuPy(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: error %v, want %q", c.file, err, c.want)
		}
	}
}

func FuzzReadCuPy(f *testing.F) {
	f.Add(sample(f, "stock.jsonl"))
	f.Add(sample(f, "cg.jsonl.gz")[:4000])
	f.Fuzz(func(t *testing.T, file []byte) {
		logs.DetectCuPy(file)
		tr, err := logs.ReadCuPy(bytes.NewReader(file))
		if err == nil {
			err = tr.Validate()
		} else if strings.HasPrefix(err.Error(), "cupy: ") {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}
