package arrowfile

import (
	"errors"
	"fmt"
)

// ErrLimit reports a file that asks for more than the reader's [Limits].
var ErrLimit = errors.New("over the reader's limit")

// Limits bound what a file may ask of its reader. A zero field stands for the
// default given with it.
type Limits struct {
	Events   int64 // rows in the file; 2^28
	Batch    int64 // bytes of one record batch, packed or unpacked; 256 MiB
	Metadata int64 // bytes of the header of one message, the schema's among them; 16 MiB
	Label    int64 // bytes of one label; 64 KiB
	Labels   int64 // bytes of all different labels; 64 MiB
	Ratio    int64 // unpacked bytes for each byte of the file, beyond the first 64 MiB; 256
}

// unpackedFree is what a file may unpack to, however small it is, in bytes.
const unpackedFree = 64 << 20

func (l Limits) withDefaults() Limits {
	set := func(field *int64, value int64) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&l.Events, 1<<28)
	set(&l.Batch, 256<<20)
	set(&l.Metadata, 16<<20)
	set(&l.Label, 64<<10)
	set(&l.Labels, 64<<20)
	set(&l.Ratio, 256)
	return l
}

// allow reports whether a batch may unpack to these many bytes, after unpacked
// and read bytes so far.
func (l Limits) allow(batch, unpacked, read int64) error {
	if batch < 0 || batch > l.Batch {
		return overLimit("bytes of a record batch", batch, l.Batch)
	}
	if most := unpackedFree + read*l.Ratio; batch > most-unpacked {
		return overLimit("unpacked bytes", unpacked+batch, most)
	}
	return nil
}

func overLimit(what string, got, limit int64) error {
	return fmt.Errorf("%s: %d %w of %d", what, got, ErrLimit, limit)
}

// A guard is the allocator that the library unpacks columns with. Headers may
// lead it to lengths that checkBody has not seen: it reads past the end of a list
// of buffers. A guard refuses by a panic, as the interface has no other way, and
// the library makes an error of that.
type guard struct {
	left int64 // bytes that this batch may still take
}

func (g *guard) Allocate(size int) []byte {
	if size < 0 || int64(size) > g.left {
		panic(fmt.Errorf("columns of a batch: %w", ErrLimit))
	}
	g.left -= int64(size)
	return make([]byte, size)
}

func (g *guard) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	grown := g.Allocate(size)
	copy(grown, b)
	return grown
}

func (g *guard) Free([]byte) {}
