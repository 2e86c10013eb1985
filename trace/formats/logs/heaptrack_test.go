package logs_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/logs"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// TestHeaptrack reads what heaptrack 1.4 wrote of ls -R, of coreutils 9.1.
func TestHeaptrack(t *testing.T) {
	file := sample(t, "ls.heaptrack.gz")
	if !logs.DetectHeaptrack(file) || logs.DetectHeaptrack([]byte("v 1 2\nw 3\n")) {
		t.Error("Detect")
	}
	tr, err := logs.ReadHeaptrack(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Validate(); err != nil {
		t.Fatal(err)
	}
	s := recording.StatsOf(tr)
	var last int64 // stamp
	fmt.Sscanf(string(file[bytes.LastIndex(file, []byte("\nc "))+1:]), "c %x", &last)
	if s.Allocs != bytes.Count(file, []byte("\n+ ")) || s.Drops != bytes.Count(file, []byte("\n- ")) {
		t.Errorf("%+v", s)
	}
	if ms := s.Span.Milliseconds(); ms <= 0 || ms > last || !strings.HasPrefix(tr.Meta["app"], "ls -R ") {
		t.Errorf("%d ms, %v", ms, tr.Meta)
	}
	const site = `__fopen_internal	./libio/iofopen.c:`
	for _, e := range tr.Events {
		if strings.HasPrefix(tr.Label(e), site) && e.Kind == trace.Alloc {
			return
		}
	}
	t.Errorf("no allocation at %q", site)
}

func TestHeaptrackErrors(t *testing.T) {
	const head = "v 10400 3\na 10 0\n"
	for text, want := range map[string]string{
		"":                              "empty trace",
		head + "+ 1\n":                  "line 3: allocation 1 of 1",
		head + "- 0\n":                  "line 3: free of allocation 0",
		head + "+ x\n":                  "line 3: ",
		head + "i 1\n":                  "line 3: i with 1 numbers",
		head + "c a\nc 9\n":             "line 4: time goes backwards",
		head + "a ffffffffffff0000 0\n": "line 3: ",
	} {
		if _, err := logs.ReadHeaptrack(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadHeaptrack(f *testing.F) {
	f.Add(sample(f, "ls.heaptrack.gz")[:3000])
	f.Fuzz(func(t *testing.T, file []byte) {
		tr, err := logs.ReadHeaptrack(bytes.NewReader(file))
		if err == nil {
			err = tr.Validate()
		} else if strings.HasPrefix(err.Error(), "heaptrack: ") {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}
