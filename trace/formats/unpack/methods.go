//go:build !small

package unpack

import (
	"bufio"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

func newGzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }

func (u *Reader) newZstd(r *bufio.Reader) (io.Reader, error) {
	u.window = 8 << 20 // the least that every decoder must accept
	var h zstd.Header
	if b, _ := r.Peek(zstd.HeaderMaxSize); h.Decode(b) == nil {
		u.window = max(u.window, int64(min(h.WindowSize, MaxWindow)))
	}
	// One goroutine is enough: parsing takes longer than decoding.
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(uint64(u.window)))
	if err != nil {
		return nil, err
	}
	u.close = d.Close
	return d, nil
}

// xzWindow returns the size of the window of the first block, which is that of all
// blocks in files of xz. The block's header follows the 12 bytes of the stream's:
// https://tukaani.org/xz/xz-file-format.txt, sections 3.1 and 5.3.1.
func xzWindow(r *bufio.Reader) (int64, error) {
	b, err := r.Peek(64)
	if err != nil && err != io.EOF {
		return 0, err
	}
	const stream = 12
	if len(b) < stream+6 || b[stream] == 0 { // cut off, or without a block
		return 0, nil
	}
	at := stream + 2
	for _, present := range []byte{0x40, 0x80} { // sizes of the block, as varints
		for present&b[stream+1] != 0 && at < len(b)-3 {
			at++
			if b[at-1] < 0x80 {
				break
			}
		}
	}
	if b[at] != 0x21 || b[at+1] != 1 { // another filter is in front: the library knows none
		return 0, nil
	}
	size := int64(2|b[at+2]&1) << (b[at+2]/2 + 11)
	if size > MaxWindow {
		return 0, fmt.Errorf("window of %d bytes is over %d", size, MaxWindow)
	}
	return size, nil
}

// newXz returns a reader of the xz stream in r. The library does not notice that a
// file ends between two blocks. A whole file ends with a footer, so check for that.
func (u *Reader) newXz(r *bufio.Reader, tail *tailReader) (_ io.Reader, err error) {
	if u.window, err = xzWindow(r); err != nil {
		return nil, err
	}
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
