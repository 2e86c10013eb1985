// Package unpack unpacks streams that are packed with gzip, zstd or xz. The first
// bytes of a stream say how it is packed; its file name does not matter. A stream
// that is not packed passes through unchanged.
//
// Only one layer is unpacked. The number of unpacked bytes has a bound, so that a
// small file cannot unpack without end. The decoder needs memory for the window
// that the stream asks for, at most [MaxWindow] for zstd.
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
	// DefaultMost is the most unpacked bytes that a [Reader] gives unless told
	// otherwise: 64 GiB.
	DefaultMost = 64 << 30
	// MaxWindow is the largest zstd window accepted, in bytes. It is the window of
	// zstd --long=27, the largest that the zstd tool accepts by default.
	MaxWindow = 128 << 20
)

// ErrTooLarge reports that a packed stream unpacks to too many bytes.
var ErrTooLarge = errors.New("unpacks to too many bytes")

// A Reader reads the unpacked bytes of a stream. It is for one goroutine at a
// time. Close frees the decoder's memory; it does not close the packed stream.
type Reader struct {
	from   *bufio.Reader // the unpacked bytes
	method string        // gzip, zstd, xz or "" if the stream is not packed
	most   int64         // bytes that may be read; only for packed streams
	offset int64         // unpacked bytes read so far
	close  func()
}

// NewReader returns a Reader of the stream r. It unpacks at most most bytes, or
// [DefaultMost] if most is 0. The bound does not hold for a stream that is not
// packed. An error is about reading or decoding the first bytes of r.
func NewReader(r io.Reader, most int64) (*Reader, error) {
	if most <= 0 {
		most = DefaultMost
	}
	tail := &tailReader{r: r}
	head := bufio.NewReaderSize(tail, bufferSize)
	magic, err := head.Peek(len(xzMagic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	u := &Reader{most: most, close: func() {}}
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
	// One goroutine is enough: parsing takes longer than decoding.
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxWindow))
	if err != nil {
		return nil, err
	}
	u.close = d.Close
	return d, nil
}

// newXz returns a reader of the xz stream in r. The library does not notice that a
// file ends between two blocks. A whole file ends with a footer, so check for that.
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

// A tailReader remembers the last two bytes read, but not zeros at the end: an xz
// file may be padded with zeros.
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
	if u.method != "" && u.offset > u.most {
		return 0, u.wrap(fmt.Errorf("%w: more than %d", ErrTooLarge, u.most))
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
