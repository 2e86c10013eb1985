package pprof_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/pprof"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

const text = `
name "app\x1b"
start 2026-11-21T05:00:00Z
0 alloc id=1 bytes=100 space=device0 label="layer.forward\tmodel.go:12\ntrain\tmain.go:7"
10 alloc id=2 bytes=50 space=device0 label="layer.forward\tmodel.go:12\ntrain\tmain.go:7"
20 alloc id=3 bytes=7 label="layer.forward\tmodel.go:20\ntrain\tmain.go:7"
30 drop id=1 bytes=100 space=device0
40 free id=1 bytes=100 space=device0
50 alloc id=4 bytes=101
60 free id=4 bytes=101
70 alloc id=5 bytes=101 label="train\u202e\tother.go:-3\ntrain\tother.go:7"
`

// written returns the samples of the profile as go tool pprof sees them, and a digest of all of its String.
func written(t *testing.T, tr *trace.Trace, at time.Duration) (*profile.Profile, []string) {
	t.Helper()
	var b bytes.Buffer
	if err := pprof.Write(&b, tr, at); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Sample {
		line := fmt.Sprint(s.Value, s.Label["space"])
		for _, l := range s.Location {
			f := l.Line[0].Function
			line += fmt.Sprintf(" %s@%s:%d", f.Name, f.Filename, l.Line[0].Line)
		}
		got = append(got, line)
	}
	all := p.Copy()
	all.TimeNanos = 0 // which String writes in the local zone
	return p, append(got, fmt.Sprintf("%x", sha256.Sum256([]byte(all.String())))[:8])
}

func TestWrite(t *testing.T) {
	tr, err := recording.ReadText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   time.Duration
		want []string
	}{
		{pprof.AtPeak, []string{
			"[2 150 1 50] [device0] layer.forward@model.go:12 train@main.go:7",
			"[1 7 1 7] [host] layer.forward@model.go:20 train@main.go:7",
			"[1 101 1 101] [host] (unknown)@:0", "784c298a",
		}},
		{time.Hour, []string{
			"[2 150 1 50] [device0] layer.forward@model.go:12 train@main.go:7",
			"[1 7 1 7] [host] layer.forward@model.go:20 train@main.go:7",
			"[1 101 0 0] [host] (unknown)@:0",
			`[1 101 1 101] [host] train\u202e@other.go:-3:0 train@other.go:7`, "bbf732fa",
		}},
		{-5, []string{"97ce8dd7"}},
	} {
		p, got := written(t, tr, c.at)
		if !slices.Equal(got, c.want) {
			t.Errorf("at %v:\ngot  %q\nwant %q", c.at, got, c.want)
		}
		if p.TimeNanos != tr.Start.UnixNano()+p.DurationNanos {
			t.Errorf("at %v: time %d", c.at, p.TimeNanos)
		}
	}
}

// Where sites are sampled, what has a label stands for more, and the rest of what
// the space really holds is unknown: 512 bytes stand for 512/(1-exp(-512/739)),
// which is 1024.33.
func TestSampled(t *testing.T) {
	tr, err := recording.ReadText(strings.NewReader(`
0 mark bytes=739 space=device0 label="pool: bytes between sampled sites"
0 mark bytes=1 label="pool: bytes between sampled sites"
0 alloc id=9 space=device0 label="f"
0 alloc id=1 bytes=512 space=device0 label="f"
1 alloc id=2 bytes=512 space=device0
2 alloc id=3 bytes=512 space=device0 label="g"
3 alloc id=4 bytes=512 space=device0
4 alloc id=5 bytes=512 space=device0
5 alloc id=6 bytes=100 label="f"
6 alloc id=7 bytes=100
7 alloc id=8 bytes=1048576 space=device0 label="g"
8 drop id=1 bytes=512 space=device0
9 drop id=2 bytes=512 space=device0
`))
	if err != nil {
		t.Fatal(err)
	}
	p, got := written(t, tr, time.Hour)
	want := []string{
		"[2 1024 0 0] [device0] f@:0",
		"[3 1049600 3 1049600] [device0] g@:0",
		"[1 100 1 100] [host] f@:0",
		"[1 100 1 100] [host] (unknown)@:0",
		"[2 511 2 512] [device0] (unknown)@:0", "b63aea25",
	}
	if !slices.Equal(got, want) || p.Period != 739 {
		t.Errorf("period %d\ngot  %q\nwant %q", p.Period, got, want)
	}
}
