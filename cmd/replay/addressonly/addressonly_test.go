package addressonly_test

import (
	"testing"

	"github.com/eagergc/eagergc/cmd/replay/addressonly"
)

const mib = 1 << 20

func open(t *testing.T, kind addressonly.Kind, limit int64) *addressonly.Memory {
	t.Helper()
	m := addressonly.New(kind, limit)
	t.Cleanup(m.Close)
	return m
}

// Sixteen blocks of 40 MiB, every second one given back: of 640 MiB half are
// free, but no two neighbours. A block of 80 MiB fits where nothing is cached,
// and where memory moves.
func TestFragments(t *testing.T) {
	for kind, fits := range map[addressonly.Kind]bool{addressonly.Exact: true, addressonly.Virtual: true} {
		m := open(t, kind, 640*mib)
		n := int32(0)
		for m.Alloc(n, 40*mib) {
			n++
		}
		if n < 12 {
			t.Fatalf("%s: %d blocks fit", kind, n)
		}
		for i := int32(0); i < n; i += 2 {
			m.Free(i)
		}
		if got := m.Alloc(1000, 80*mib); got != fits {
			t.Errorf("%s: fits %v", kind, got)
		}
	}
}

// A small block that is left in a segment holds all of it. Memory that moves goes
// in chunks, of 8 MiB here.
func TestWholeSegmentsStayWhileAnythingIsInThem(t *testing.T) {
	for _, c := range []struct {
		kind  addressonly.Kind
		block int64
		fits  bool
	}{
		{addressonly.Exact, 4 * mib, true}, {addressonly.Segments, 4 * mib, false},
		{addressonly.Virtual, 4 * mib, false}, {addressonly.Virtual, 16 * mib, true},
	} {
		m := open(t, c.kind, 2048*mib)
		n := int32(0)
		for m.Alloc(n, c.block) {
			n++
		}
		for i := int32(0); i < n; i += 2 {
			m.Free(i)
		}
		before := m.Mapped()
		if got := m.Alloc(1000, 512*mib); got != c.fits {
			t.Errorf("%s: 512 MiB fit beside %d live: %v", c.kind, m.Live(), got)
		}
		if moved := m.Mapped() - before; moved != 0 && moved != 64 {
			t.Errorf("%s: %d chunks moved", c.kind, moved)
		}
	}
}
