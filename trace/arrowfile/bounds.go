package arrowfile

import (
	"errors"
	"fmt"
)

// ErrBound reports a file that asks for more than the reader's [Bounds].
var ErrBound = errors.New("over the bound of the reader")

// Bounds bound what a file may make its reader do. A zero field means the default
// in its comment.
type Bounds struct {
	Events   int64 // rows in the file; 2^28
	Batch    int64 // bytes of one record batch, packed or unpacked; 256 MiB
	Metadata int64 // bytes of the header of one message, the schema's among them; 16 MiB
	Label    int64 // bytes of one label; 64 KiB
	Labels   int64 // bytes of all different labels; 64 MiB
	Ratio    int64 // unpacked bytes for each byte of the file, beyond the first 64 MiB; 256
}

// unpackedFree is the number of bytes that even the smallest file may unpack to.
const unpackedFree = 64 << 20

func (l Bounds) withDefaults() Bounds {
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

// allow returns an error if a batch must not unpack to batch bytes, after read
// bytes of the file have unpacked to unpacked bytes.
func (l Bounds) allow(batch, unpacked, read int64) error {
	if batch < 0 || batch > l.Batch {
		return overBound("bytes of a record batch", batch, l.Batch)
	}
	if most := unpackedFree + read*l.Ratio; batch > most-unpacked {
		return overBound("unpacked bytes", unpacked+batch, most)
	}
	return nil
}

func overBound(what string, got, limit int64) error {
	return fmt.Errorf("%s: %d %w of %d", what, got, ErrBound, limit)
}

// A guard is the allocator for unpacked columns. A bad header can make the library
// read past the end of the list of buffers, and so allocate a length that checkBody
// has not seen. The interface has no error, so a guard refuses with a panic, and
// the library turns it into an error.
type guard struct {
	left int64 // bytes that this batch may still take
}

func (g *guard) Allocate(size int) []byte {
	if size < 0 || int64(size) > g.left {
		panic(fmt.Errorf("columns of a batch: %w", ErrBound))
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
