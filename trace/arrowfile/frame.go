package arrowfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/zstd"

	"github.com/eagergc/eagergc/trace/spill"
)

// Framing of the stream format: https://arrow.apache.org/docs/format/Columnar.html
const (
	continuation = 0xFFFFFFFF // before the length of a message's header
	fileMagic    = "ARROW1"   // the file format, which this package does not read
)

// frames splits a stream into messages. It is an [ipc.MessageReader]. The library's
// own one trusts every length in the file, and does not notice where a stream was
// cut off.
type frames struct {
	from     io.Reader
	bounds   Bounds
	store    *spill.Store // counts the batch that is being read
	batch    int64        // bytes of it
	offset   int64        // of the next message
	unpacked int64        // bytes of the batches so far
	cut      error        // why the stream has ended without its end mark; nil if it has not
	body     bytes.Buffer
	guard    guard
	zstd     *zstd.Decoder
	scratch  []byte // for unpacked bytes
}

func (f *frames) Retain()  {}
func (f *frames) Release() {}

// Message returns the next message, which is valid until the next call. It returns
// io.EOF at the end mark, and also where the stream is cut off; then cut is set.
func (f *frames) Message() (*ipc.Message, error) {
	var head [8]byte
	n, err := io.ReadFull(f.from, head[:])
	switch {
	case n == 0 && err == io.EOF:
		f.cut = errors.New("no end-of-stream mark")
		return nil, io.EOF
	case err != nil:
		return nil, f.short("length of a message", err)
	case string(head[:6]) == fileMagic:
		return nil, errors.New("this is Arrow's file format (Feather), want its stream format")
	}
	size := int64(int32(binary.LittleEndian.Uint32(head[4:])))
	if binary.LittleEndian.Uint32(head[:]) != continuation || size < 0 || size%8 != 0 {
		return nil, fmt.Errorf("no Arrow message, but % x", head)
	}
	if size == 0 {
		return nil, f.end()
	}
	if size > f.bounds.Metadata {
		return nil, overBound("header of a message", size, f.bounds.Metadata)
	}
	header := new(bytes.Buffer)
	if err := f.read(header, size); err != nil {
		return nil, f.short("header of a message", err)
	}
	return f.message(header.Bytes())
}

// message reads the body that belongs to a header.
func (f *frames) message(b []byte) (msg *ipc.Message, err error) {
	defer contain(&err)
	h := newHeader(b, f.bounds)
	if err := h.check(); err != nil {
		return nil, err
	}
	size := h.bodyLength()
	if size < 0 || size > f.bounds.Batch {
		return nil, overBound("body of a message", size, f.bounds.Batch)
	}
	f.hold(0)
	f.body.Reset()
	if err := f.read(&f.body, size); err != nil {
		return nil, f.short("body of a message", err)
	}
	if err := f.checkBody(h.packed()); err != nil {
		return nil, err
	}
	f.guard.left = f.bounds.Batch + 128*maxColumns // and the rounding of each buffer
	f.offset += 8 + int64(len(b)) + size
	body := f.body.Bytes()
	if h.kind == headerIsDictionary { // which stays
		body = bytes.Clone(body)
		f.store.Hold(f.batch + size)
	}
	return ipc.NewMessage(memory.NewBufferBytes(b), memory.NewBufferBytes(body)), nil
}

// checkBody checks the packed buffers of a body against the bounds. It also unpacks
// the zstd buffers, to check their checksums: the library stops before a checksum.
// The library then unpacks them again, which costs little compared to the rest.
func (f *frames) checkBody(packed []packedBuffer) error {
	var size int64
	for _, p := range packed {
		data := f.body.Bytes()[p.offset:][:p.length]
		if len(data) == 0 {
			continue
		}
		length := int64(binary.LittleEndian.Uint64(data))
		if length == -1 { // not packed after all
			continue
		}
		if length < 0 {
			return fmt.Errorf("buffer at byte %d of the body is %d bytes long", p.offset, length)
		}
		size += length
		if f.hold(2 * size); f.store.Err() != nil { // packed and unpacked
			return f.store.Err()
		}
		if err := f.bounds.allow(size, f.unpacked, f.offset+int64(f.body.Len())); err != nil {
			return err
		}
		if !p.zstd {
			continue
		}
		var err error
		f.scratch, err = f.zstd.DecodeAll(data[8:], f.scratch[:0])
		if err == nil && int64(len(f.scratch)) != length {
			err = fmt.Errorf("unpacks to %d bytes, want %d", len(f.scratch), length)
		}
		if err != nil {
			return fmt.Errorf("buffer at byte %d of the body: %w", p.offset, err)
		}
	}
	f.unpacked += size
	return nil
}

// hold counts the memory of the batch that is being read.
func (f *frames) hold(bytes int64) {
	f.store.Hold(bytes - f.batch)
	f.batch = bytes
}

// read reads size bytes into b. The buffer grows with the bytes that are really
// there, not with the size that the file claims.
func (f *frames) read(b *bytes.Buffer, size int64) error {
	n, err := io.CopyN(b, f.from, size)
	if err == io.EOF {
		return fmt.Errorf("%d of %d bytes: %w", n, size, io.ErrUnexpectedEOF)
	}
	return err
}

// short handles a message that is not whole: a cut, or an error of reading.
func (f *frames) short(what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		f.cut = err
		return io.EOF
	}
	return err
}

// end checks that nothing follows the end mark.
func (f *frames) end() error {
	var next [1]byte
	switch _, err := io.ReadFull(f.from, next[:]); err {
	case io.EOF:
		return io.EOF
	case nil:
		return errors.New("more bytes after the end of the stream")
	default:
		return err
	}
}

// contain turns a panic of the library on bad input into an error.
func contain(err *error) {
	switch p := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("bad Arrow data: %w", p)
	default:
		*err = fmt.Errorf("bad Arrow data: %v", p)
	}
}
