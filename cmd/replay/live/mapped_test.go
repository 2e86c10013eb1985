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

// chunks are addresses in a mapper's chunks, without memory. One goroutine at a time.
type chunks struct {
	next   uintptr
	size   int64 // of a chunk
	mapped int64 // chunks that were put behind addresses
}

func (*chunks) Granule() int64 { return 2 << 20 }

func (c *chunks) Range(chunk int64, _ uint32) (uintptr, int64, error) {
	const room = 1 << 40
	c.size = chunk
	c.next += room
	return c.next &^ uintptr(chunk-1), room - chunk, nil
}

func (c *chunks) Map(to, _ []pool.Span, _ uint32) error {
	for _, s := range to {
		c.mapped += s.Bytes / c.size
	}
	return nil
}

func (*chunks) Unmap(pool.Span) error { return nil }

func (*chunks) FreeRange(uintptr) error { return nil }

func (c *chunks) Allocate(bytes int64, _ uint32) (uintptr, error) {
	c.next += uintptr(bytes)
	return c.next - uintptr(bytes), nil
}

func (*chunks) Release(uintptr, int64, uint32) error { return nil }

func (*chunks) Info() (pressure.Info, error) {
	return pressure.Info{}, errors.New("there is no memory")
}

func (*chunks) Upload(uintptr, []byte, uint32) error       { return nil }
func (*chunks) Download([]byte, uintptr, uint32) error     { return nil }
func (*chunks) Copy(uintptr, uintptr, int64, uint32) error { return nil }
func (*chunks) Fill(uintptr, []byte, int64, uint32) error  { return nil }
