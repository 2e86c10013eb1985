package session

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const (
	memory  = "eagergc trace 1\nstart 2026-01-02T03:04:05Z\n0 alloc id=1 bytes=1048576 space=device0\n2000000 drop id=1 bytes=1048576 space=device0\n3000000 alloc id=2 bytes=2097152 space=device0\n"
	profile = "eagergc trace 1\nstart 2026-01-02T03:04:05Z\n1000000 sync duration=500000\n2500000 sync duration=100000\n"
)

func opened(t *testing.T, texts ...string) (*Session, info, error) {
	t.Helper()
	s := new(Session)
	var from []Source
	for _, text := range texts {
		from = append(from, Source{Name: "run.txt", From: strings.NewReader(text)})
	}
	i, err := s.Load(from)
	return s, i, err
}

// A recording and the profile of its run are joined in either order. A file that does not fit is
// refused, and the loaded recording stays.
func TestLoad(t *testing.T) {
	for _, texts := range [][]string{{memory, profile}, {profile, memory}} {
		s, i, err := opened(t, texts...)
		again, err2 := s.Info()
		if err != nil || err2 != nil || i != again || i.Name != "run.txt" || i.Syncs != 2 || i.Allocs != 2 || i.Peak != 2<<20 || i.Gross != 3<<20 || i.Space != "device0" {
			t.Errorf("%+v, %v, %+v, %v", i, err, again, err2)
		}
	}
	for want, texts := range map[string][]string{
		"no allocations":       {profile},
		"not of the same time": {memory, strings.Replace(profile, "2026", "2025", 1)},
		"run.txt: ":            {"none of ours"},
	} {
		s, _, err := opened(t, texts...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := s.Sweep(Setting{}, nil, nil); !errors.Is(err, errNothing) {
			t.Errorf("replays nothing: %v", err)
		}
	}
}

// The page shows each policy at the limit that is chosen, the least lost first and with memory at
// its price; results that are known are not run again.
func TestViewAndRun(t *testing.T) {
	var text strings.Builder
	text.WriteString(memory[:strings.Index(memory, "0 alloc")])
	for i := range 100 {
		for _, line := range []string{"000 alloc", "500 drop"} {
			text.WriteString(strings.NewReplacer("#", string(rune('0'+i/10))+string(rune('0'+i%10)), "LINE", line).Replace("9#LINE id=1# bytes=1048576 space=device0\n"))
		}
	}
	s, _, err := opened(t, text.String())
	if err != nil {
		t.Fatal(err)
	}
	q := Setting{Policies: []string{"never", "periodic:1us", "pacer", "optimum-overlap"}, Limits: []string{"2x", "200x"}, Limit: 0, Cycle: "1us", Ladder: "2x"}
	var shares []float64
	known, err := s.Sweep(q, nil, func(share float64) { shares = append(shares, share) })
	if !slices.IsSorted(shares) || len(shares) != 8 || shares[7] != 1 {
		t.Errorf("shares done: %v", shares)
	}
	if err != nil || len(known) != 8 || known[0].RefusalCollections == 0 || known[4].RefusalCollections > 0 {
		t.Fatalf("%+v, %v", known, err)
	}
	p, err := s.View(q, known, 0)
	if err != nil || len(p.Table) != 5 || p.Table[1][0] != "optimum-overlap" || !strings.Contains(p.Verdict, " loses least: ") || !strings.Contains(p.Beside, "imit of 2x") || len(p.Charts) != len(p.Figures) {
		t.Errorf("%+v, %v", p, err)
	}
	q.Limit = 1
	if dear, err := s.View(q, nil, 1e6); err != nil || !strings.Contains(dear.Verdict, "memory at its price") || strings.HasPrefix(dear.Verdict, "never") {
		t.Errorf("%+v, %v", dear.Verdict, err)
	}
	shown, err := s.Run(q, 10)
	if err != nil || len(shown.Results) != 4 || !slices.Equal(shown.Results, known[4:]) || len(shown.Recording.Runs) != 4 {
		t.Errorf("%+v, %v", shown, err)
	}
	q.Policies = []string{"cudjl"}
	if _, err := s.Run(q, 10); err == nil {
		t.Error("an unknown policy runs")
	}
}
