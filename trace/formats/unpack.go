package formats

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

const (
	bufferSize  = 64 << 10
	usualWindow = 8 << 20   // of a decoder: what each of zstd must accept, and xz -6 asks for
	mostWindow  = 128 << 20 // with more memory: that of zstd --long=27

	freeUnpacked  = 64 << 20 // bytes that the smallest stream may unpack to
	unpackedRatio = 100      // unpacked bytes that each packed byte adds; real recordings unpack to 8 to 33 times
)

var errUnpacked = errors.New("unpacks to too many bytes")

// An unpacker reads the unpacked bytes of a stream. It detects gzip, zstd, xz or neither
// by the first bytes.
type unpacker struct {
	from              *bufio.Reader // the unpacked bytes
	method            string        // gzip, zstd, xz or "" if the stream is not packed
	*recording.Budget               // counts the bytes that are held of the stream
	packed            int64         // bytes of the stream read so far
	offset            int64         // unpacked bytes read so far
	window            int64         // bytes that the decoder keeps at most
	close             func()
}

func newUnpacker(r io.Reader, b *recording.Budget) (*unpacker, error) {
	u := &unpacker{Budget: b, close: func() {}}
	head := bufio.NewReaderSize(io.TeeReader(r, u), bufferSize)
	magic, err := head.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	var plain io.Reader
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		u.method = "gzip"
		plain, err = gzip.NewReader(head)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		u.method = "zstd"
		plain, err = u.zstd(head)
	case string(magic) == "\xfd7zX":
		u.method, u.window = "xz", u.mostOf(xz.DefaultDictMax)
		plain, err = xz.NewReader(head, uint32(u.window))
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

// mostOf returns the window that a decoder may be asked for, in bytes.
func (u *unpacker) mostOf(most int64) int64 { return min(most, max(usualWindow, u.Memory)) }

func (u *unpacker) zstd(r io.Reader) (io.Reader, error) {
	u.window = u.mostOf(mostWindow)
	// One goroutine is enough: parsing takes longer than decoding.
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(uint64(u.window)))
	if err == nil {
		u.close = d.Close
	}
	return d, err
}

// Write counts bytes of the stream that are read.
func (u *unpacker) Write(p []byte) (int, error) {
	u.packed += int64(len(p))
	u.Arrived(len(p))
	return len(p), nil
}

// peek returns the next n bytes without reading them, fewer if the stream ends before.
func (u *unpacker) peek(n int) ([]byte, error) {
	b, err := u.from.Peek(n)
	if err == io.EOF {
		err = nil
	}
	return b, u.wrap(err)
}

// Read reads unpacked bytes. An error other than io.EOF names the packing and
// the offset among the unpacked bytes. It is an error, too, if the budget is spent.
func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	u.Hold(min(int64(n), max(0, u.window-u.offset))) // the decoder's window fills up
	u.offset += int64(n)
	if most := freeUnpacked + unpackedRatio*u.packed; u.method != "" && u.offset > most && u.Memory == 0 {
		return 0, u.wrap(fmt.Errorf("%w: more than %d after %d packed ones (--max-memory allows more)", errUnpacked, most, u.packed))
	}
	if err := u.Err(); err != nil {
		return 0, u.wrap(err)
	}
	if err != io.EOF {
		err = u.wrap(err)
	}
	return n, err
}

func (u *unpacker) wrap(err error) error {
	switch {
	case err == nil || u.method == "":
		return err
	case err == io.EOF: // the packed stream ends inside its own header
		err = io.ErrUnexpectedEOF
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, xz.ErrMemlimit):
		err = fmt.Errorf("%w %d (--max-memory allows more)", err, u.window)
	}
	return fmt.Errorf("%s, after %d unpacked bytes: %w", u.method, u.offset, err)
}
