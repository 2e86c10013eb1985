package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/eagergc/eagergc/sim/fleet"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"github.com/eagergc/eagergc/trace/formats/synthetic"
)

func TestMain(m *testing.M) {
	beam.Init() // registers what a worker needs; the runner starts workers in this process
	os.Exit(m.Run())
}

// TestPipeline: Beam's answer has the bytes of Map and Merge called here.
func TestPipeline(t *testing.T) {
	dir, question := t.TempDir(), `{"policies": ["never", "sqrt"], "limits": ["1.5x"], "cycles_ns": [1000000], "ladder": "2x"}`
	var q fleet.Question
	if err := json.Unmarshal([]byte(question), &q); err != nil {
		t.Fatal(err)
	}
	for i, shape := range synthetic.Shapes()[:4] {
		tr, err := synthetic.Open(shape, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(dir, shape+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if err := recording.WriteText(f, tr); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if err := os.WriteFile(filepath.Join(dir, "broken.txt"), []byte("no recording"), 0o644); err != nil {
		t.Fatal(err)
	}
	var want fleet.Answer
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		a, err := q.Map(filepath.Base(name), f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		want.Merge(a)
	}
	text, err := json.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "answer.json")
	if err := run(t.Context(), dir+"/*", out, question); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil || string(got) != string(text)+"\n" {
		t.Errorf("%v\n%s\n%s", err, got, text)
	}
	if want.Recordings != 4 || len(want.Broken) != 1 {
		t.Errorf("%d recordings, %v", want.Recordings, want.Broken)
	}
	if err := run(t.Context(), dir+"/*", out, "{}"); err == nil {
		t.Error("no question is a question")
	}
}
