// Package unpack unpacks streams that are packed with gzip, zstd or xz. The first
// bytes of a stream say how it is packed; its file name does not matter. A stream
// that is not packed passes through unchanged.
//
// Only one layer is unpacked. A stream may unpack to 64 MiB and 100 times its
// packed bytes: real recordings unpack to 8 to 33 times, with xz, and a file that is
// made to keep its reader busy to a thousand times. The decoder needs memory for the
// window that the stream asks for, at most [MaxWindow].
package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/eagergc/eagergc/trace/spill"
)

const (
	// MaxWindow is the largest window accepted, in bytes. It is the window of zstd
	// --long=27, the largest that the zstd tool accepts by default; xz -9 needs half
	// of it.
	MaxWindow = 128 << 20

	free  = 64 << 20 // bytes that the smallest stream may unpack to
	ratio = 100      // unpacked bytes that each packed byte adds
)

// ErrTooLarge reports that a packed stream unpacks to too many bytes.
var ErrTooLarge = errors.New("unpacks to too many bytes")

// A Reader reads the unpacked bytes of a stream. It is for one goroutine at a
// time. Close frees the decoder's memory; it does not close the packed stream.
type Reader struct {
	from   *bufio.Reader // the unpacked bytes
	method string        // gzip, zstd, xz or "" if the stream is not packed
	store  *spill.Store
	packed int64 // bytes of the stream read so far
	offset int64 // unpacked bytes read so far
	window int64 // bytes that the decoder keeps at most
	close  func()
}

// NewReader returns a Reader of the stream r. The store bounds what is held of the
// stream; nil stands for a new one. Its Memory, if set, lets the stream unpack to
// any number of bytes. If r is a Reader, NewReader returns it. An error is about
// reading or decoding the first bytes of r.
func NewReader(r io.Reader, s *spill.Store) (*Reader, error) {
	if u, ok := r.(*Reader); ok {
		return u, nil
	}
	if s == nil {
		s = new(spill.Store)
	}
	u := &Reader{store: s, close: func() {}}
	tail := &tailReader{r: r, count: u.count}
	head := bufio.NewReaderSize(tail, bufferSize)
	magic, err := head.Peek(len(xzMagic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	var plain io.Reader
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		u.method = "gzip"
		plain, err = newGzip(head)
	case bytes.HasPrefix(magic, zstdMagic):
		u.method = "zstd"
		plain, err = u.newZstd(head)
	case bytes.HasPrefix(magic, xzMagic):
		u.method = "xz"
		plain, err = u.newXz(head, tail)
	default:
		u.from = head
		return u, nil
	}
	if err != nil {
		return nil, u.wrap(err)
	}
	u.from = bufio.NewReaderSize(plain, bufferSize)
	return u, nil
}

// count takes n more bytes of the packed stream.
func (u *Reader) count(n int) {
	u.packed += int64(n)
	u.store.Read(n)
}

// Store returns what counts the bytes that are held of the stream.
func (u *Reader) Store() *spill.Store { return u.store }

const bufferSize = 64 << 10

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	xzMagic   = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
)

// A tailReader remembers the last two bytes read, but not zeros at the end: an xz
// file may be padded with zeros.
type tailReader struct {
	r     io.Reader
	count func(n int)
	last  [2]byte
}

func (t *tailReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.count(n)
	switch b := bytes.TrimRight(p[:n], "\x00"); len(b) {
	case 0:
	case 1:
		t.last = [2]byte{t.last[1], b[0]}
	default:
		t.last = [2]byte(b[len(b)-2:])
	}
	return n, err
}

// Method returns gzip, zstd, xz, or "" if the stream is not packed.
func (u *Reader) Method() string { return u.method }

// Peek returns the next n bytes without reading them, fewer if the stream ends
// before. They are valid until the next read. n is at most 4096.
func (u *Reader) Peek(n int) ([]byte, error) {
	b, err := u.from.Peek(min(n, 4096))
	if err == io.EOF {
		err = nil
	}
	return b, u.wrap(err)
}

// Read reads unpacked bytes. An error other than io.EOF names the packing and
// the offset among the unpacked bytes. It is an error, too, if the store holds more
// than the stream may ask for.
func (u *Reader) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	u.store.Hold(min(int64(n), max(0, u.window-u.offset))) // the decoder's window fills up
	u.offset += int64(n)
	if most := free + ratio*u.packed; u.method != "" && u.offset > most && u.store.Memory == 0 {
		return 0, u.wrap(fmt.Errorf("%w: more than %d after %d packed ones (--max-memory allows more)", ErrTooLarge, most, u.packed))
	}
	if err := u.store.Err(); err != nil {
		return 0, u.wrap(err)
	}
	if err != io.EOF {
		err = u.wrap(err)
	}
	return n, err
}

// Close frees the decoder's memory.
func (u *Reader) Close() { u.close() }

func (u *Reader) wrap(err error) error {
	if err == nil || u.method == "" {
		return err
	}
	if err == io.EOF { // the packed stream ends inside its own header
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("unpack: %s, after %d unpacked bytes: %w", u.method, u.offset, err)
}
