// Package unpack takes gzip, zstd and xz off a stream. What a stream is packed
// with is found from its first bytes, never from a file name, and a stream that
// is not packed passes through unchanged.
//
// One layer is taken off. The number of unpacked bytes is limited, so that a
// small file cannot unpack without end; a decoder's own memory is the window
// that the packed stream asks for, at most [MaxWindow] for zstd.
package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

const (
	// DefaultLimit is the most unpacked bytes that a [Reader] gives unless told
	// otherwise: 64 GiB.
	DefaultLimit = 64 << 30
	// MaxWindow is the largest zstd window accepted, in bytes: that of zstd
	// --long=27, the most that the zstd tool itself accepts unasked.
	MaxWindow = 128 << 20
)

// ErrTooLarge reports that a packed stream unpacks to more than its limit.
var ErrTooLarge = errors.New("unpacks to more than its limit")

// A Reader reads the unpacked bytes of a stream. It is for one goroutine at a
// time. Close gives back the decoder's memory; it does not close the stream
// underneath.
type Reader struct {
	from   *bufio.Reader // the unpacked bytes
	method string        // gzip, zstd, xz or "" if the stream is not packed
	limit  int64         // bytes that may still be read; only for packed streams
	offset int64         // unpacked bytes read so far
	close  func()
}

// NewReader returns a Reader of what is packed in r. At most limit bytes are
// unpacked, or [DefaultLimit] if limit is 0; a stream that is not packed has no
// limit. The error is that of reading or decoding the first bytes of r.
func NewReader(r io.Reader, limit int64) (*Reader, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	tail := &tailReader{r: r}
	head := bufio.NewReaderSize(tail, bufferSize)
	magic, err := head.Peek(len(xzMagic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	u := &Reader{limit: limit, close: func() {}}
	var plain io.Reader
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		u.method = "gzip"
		plain, err = gzip.NewReader(head)
	case bytes.HasPrefix(magic, zstdMagic):
		u.method = "zstd"
		plain, err = u.newZstd(head)
	case bytes.HasPrefix(magic, xzMagic):
		u.method = "xz"
		plain, err = newXz(head, tail)
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

const bufferSize = 64 << 10

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	xzMagic   = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
)

func (u *Reader) newZstd(r io.Reader) (io.Reader, error) {
	// One goroutine: what follows the decoder costs more than the decoder.
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxWindow))
	if err != nil {
		return nil, err
	}
	u.close = d.Close
	return d, nil
}

// newXz returns a reader of the xz stream in r. The library takes a file that
// ends between two blocks for whole; one that is whole ends with a footer.
func newXz(r io.Reader, tail *tailReader) (io.Reader, error) {
	x, err := xz.NewReader(r)
	if err != nil {
		return nil, err
	}
	return readerFunc(func(p []byte) (int, error) {
		n, err := x.Read(p)
		if err == io.EOF && string(tail.last[:]) != "YZ" {
			err = io.ErrUnexpectedEOF
		}
		return n, err
	}), nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A tailReader remembers the last two bytes read, not counting zeros at the end,
// with which xz files may be padded.
type tailReader struct {
	r    io.Reader
	last [2]byte
}

func (t *tailReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
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
// the offset among the unpacked bytes.
func (u *Reader) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	u.offset += int64(n)
	if u.method != "" && u.offset > u.limit {
		return 0, u.wrap(fmt.Errorf("%w of %d bytes", ErrTooLarge, u.limit))
	}
	if err != io.EOF {
		err = u.wrap(err)
	}
	return n, err
}

// Close gives back the decoder's memory.
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
