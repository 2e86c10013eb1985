package session

import (
	"errors"
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
