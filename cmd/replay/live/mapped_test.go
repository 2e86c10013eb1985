package live

import (
	"context"
	"errors"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// onChunks runs a recording at a limit on memory that can be mapped, without
// memory behind it.
func onChunks(tb testing.TB, name string, factor float64) (Report, *trace.Trace, chunks) {
	t, err := samples.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	space := sim.SpaceOf(t)
	w, err := sim.Compile(t, space)
	if err != nil {
		tb.Fatal(err)
	}
	chunks := new(chunks)
	r, err := Run(context.Background(), t, Config{Limit: int64(factor * float64(w.PeakReachable)), Space: space, Memory: Memory{Upstream: chunks, Space: space}})
	if err != nil {
		tb.Fatal(err)
	}
	return r, t, *chunks
}

// Fragments fail no allocation of recordings that whole segments fail. The bytes that are
// mapped again are a part of those that segments given back in parts had unmapped: 0.34
// of the bytes asked for in gnn, 0.09 in gpt2 and 0.26 in burst.
func TestMappedMemoryFailsNothing(t *testing.T) {
	for name, most := range map[string]float64{"gnn": 0.15, "gpt2": 0.05, "burst": 0.1} {
		r, tr, n := onChunks(t, name, 1.5)
		if r.FailedAllocs != 0 {
			t.Errorf("%s: %d allocations failed", name, r.FailedAllocs)
		}
		if share := float64(n.unmapped) / float64(asked(tr)); share > most {
			t.Errorf("%s: %.3f bytes unmapped for each that was asked for, at most %v", name, share, most)
		}
		if n.segments != 0 {
			t.Errorf("%s: segments were taken beside the chunks: %+v", name, n)
		}
	}
}

func asked(t *trace.Trace) (bytes int64) {
	for _, e := range t.Events {
		if e.Kind == trace.Alloc {
			bytes += e.Bytes
		}
	}
	return bytes
}

// chunks are addresses in a mapper's chunks, without memory. One goroutine at a time.
type chunks struct {
	next     uintptr
	size     int64 // of a chunk
	mapped   int64 // chunks that were put behind addresses
	unmapped int64 // bytes whose addresses were taken from them, those moved included
	segments int   // calls of Allocate and Release
}

func (*chunks) Granule() int64 { return 2 << 20 }

func (c *chunks) Range(chunk int64, _ uint32) (uintptr, int64, error) {
	const room = 1 << 40
	c.size = chunk
	c.next += room
	return c.next &^ uintptr(chunk-1), room - chunk, nil
}

func (c *chunks) Map(to, from []pool.Span, _ uint32) error {
	for _, s := range to {
		c.mapped += s.Bytes / c.size
	}
	for _, s := range from {
		c.unmapped += s.Bytes
	}
	return nil
}

func (c *chunks) Unmap(s pool.Span) error {
	c.unmapped += s.Bytes
	return nil
}

func (*chunks) FreeRange(uintptr) error { return nil }

func (c *chunks) Allocate(bytes int64, _ uint32) (uintptr, error) {
	c.segments++
	c.next += uintptr(bytes)
	return c.next - uintptr(bytes), nil
}

func (c *chunks) Release(uintptr, int64, uint32) error {
	c.segments++
	return nil
}

func (*chunks) Info() (pressure.Info, error) {
	return pressure.Info{}, errors.New("there is no memory")
}

func (*chunks) Upload(uintptr, []byte, uint32) error       { return nil }
func (*chunks) Download([]byte, uintptr, uint32) error     { return nil }
func (*chunks) Copy(uintptr, uintptr, int64, uint32) error { return nil }
func (*chunks) Fill(uintptr, []byte, int64, uint32) error  { return nil }
