package trace

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// a file of 100 events, some with a label of 11 bytes.
func hundred(t testing.TB) []byte {
	t.Helper()
	tr := &Trace{Labels: []string{"", "loss.item()"}}
	for i := range 100 {
		tr.Record(Event{Time: int64(i), Kind: Kind(i % 4), ID: uint64(i), Aux: 1})
	}
	var b bytes.Buffer
	if err := Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBounds: each bound refuses a file that is one over it, and takes one that is not.
func TestBounds(t *testing.T) {
	file := hundred(t)
	for name, c := range map[string]struct {
		field   func(*bounds) *int64
		in, out int64
	}{
		"events": {func(l *bounds) *int64 { return &l.events }, 100, 99},
		"header": {func(l *bounds) *int64 { return &l.header }, 4096, 64},
		"batch":  {func(l *bounds) *int64 { return &l.batch }, 1 << 16, 600},
		"label":  {func(l *bounds) *int64 { return &l.label }, 11, 10},
		"labels": {func(l *bounds) *int64 { return &l.labels }, 11, 10},
	} {
		for limit, want := range map[int64]error{c.in: nil, c.out: errBound} {
			l := usualBounds
			*c.field(&l) = limit
			if _, err := l.read(bytes.NewReader(file)); !errors.Is(err, want) {
				t.Errorf("%s of %d: error %v, want %v", name, limit, err, want)
			}
		}
	}
}

// Long labels make more batches, not larger ones, and come back.
func TestLongLabels(t *testing.T) {
	want := &Trace{Labels: []string{""}, Meta: map[string]string{}}
	for n := range 40_000 {
		want.Record(Event{Time: int64(n), Kind: Alloc, ID: uint64(n), Bytes: 1, Aux: uint32(n%7 + 1)})
	}
	for n := range 7 {
		want.Labels = append(want.Labels, strings.Repeat(string(rune('a'+n)), 1000))
	}
	var b bytes.Buffer
	if err := Write(&b, want); err != nil {
		t.Fatal(err)
	}
	small := usualBounds
	small.batch = 8 << 20
	got, err := small.read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Events, want.Events) || !slices.Equal(got.Labels, want.Labels) {
		t.Error("what comes back differs")
	}
}

// packed is a file whose batches are packed, here by what the standard library has: who
// unpacks it must be told of the same.
func packed(t *testing.T, events int) []byte {
	t.Helper()
	UseZstd(Codec{
		Compress: func(dst, data []byte) []byte {
			b := bytes.NewBuffer(dst)
			w := zlib.NewWriter(b)
			w.Write(data)
			w.Close()
			return b.Bytes()
		},
		Decompress: func(dst, frame []byte) ([]byte, error) {
			r, err := zlib.NewReader(bytes.NewReader(frame))
			if err != nil {
				return nil, err
			}
			b := bytes.NewBuffer(dst)
			_, err = io.Copy(b, io.LimitReader(r, int64(cap(dst))))
			return b.Bytes(), err
		},
	})
	t.Cleanup(func() { zstd.Store(nil) })
	var b bytes.Buffer
	if err := Write(&b, &Trace{Events: make([]Event, events)}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPacked: packed files are read where something unpacks them; elsewhere the error
// says what to import.
func TestPacked(t *testing.T) {
	file := packed(t, 10_000)
	if got, err := Read(bytes.NewReader(file)); err != nil || len(got.Events) != 10_000 {
		t.Errorf("%v", err)
	}
	zstd.Store(nil)
	if _, err := Read(bytes.NewReader(file)); err == nil || !strings.Contains(err.Error(), "trace/formats/zstd") {
		t.Errorf("%v", err)
	}
}

// TestBomb: a small file that unpacks to many bytes is refused before all are there.
func TestBomb(t *testing.T) {
	file := packed(t, 2<<20)
	small := usualBounds
	small.ratio = 8
	if _, err := small.read(bytes.NewReader(file)); !errors.Is(err, errBound) || !strings.Contains(err.Error(), "unpacked bytes") {
		t.Errorf("%d bytes that unpack to %d: error %v", len(file), 2<<20*43, err)
	}
	if _, err := Read(&purse{Reader: bytes.NewReader(file), left: 16<<20 + 30*int64(len(file))}); !errors.Is(err, errSpent) {
		t.Errorf("%d bytes of which 100 MB of events are made: error %v", len(file), err)
	}
}

// A purse is a reader with a budget.
type purse struct {
	*bytes.Reader
	left int64 // bytes that may still be held
}

var errSpent = errors.New("spent")

func (p *purse) Hold(bytes int64) { p.left -= bytes }

func (p *purse) Err() error {
	if p.left < 0 {
		return errSpent
	}
	return nil
}

// TestBudget: what a reader holds is counted.
func TestBudget(t *testing.T) {
	for left, want := range map[int64]error{20_000: nil, 100: errSpent} {
		if _, err := Read(&purse{bytes.NewReader(hundred(t)), left}); !errors.Is(err, want) {
			t.Errorf("of %d bytes: %v, want %v", left, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(hundred(f))
	f.Add(hundred(f)[:700])
	small := usualBounds
	small.events, small.batch, small.header = 1<<12, 1<<20, 1<<16
	f.Fuzz(func(t *testing.T, file []byte) {
		tr, err := small.read(bytes.NewReader(file))
		if err != nil {
			if tr != nil && !errors.Is(err, ErrTruncated) {
				t.Fatalf("a trace comes with %v", err)
			}
			return
		}
		var b bytes.Buffer
		if err := Write(&b, tr); err != nil {
			t.Fatal(err)
		}
		again, err := Read(&b)
		if err != nil {
			t.Fatalf("what was read cannot be written and read: %v", err)
		}
		if !slices.Equal(again.Events, tr.Events) {
			t.Fatal("a round trip changes the events")
		}
	})
}

// TestIdentitiesAreTheirOwn: a set of identities has those that were added, and no neighbour of theirs.
func TestIdentitiesAreTheirOwn(t *testing.T) {
	s := idSet{}
	for id := uint64(0); id < 2048; id += 3 {
		s.add(id)
	}
	for id := range uint64(2048) {
		if s.has(id) != (id%3 == 0) {
			t.Fatalf("identity %d: %v", id, s.has(id))
		}
	}
}
