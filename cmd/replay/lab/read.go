//go:build js && wasm && small

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"syscall/js"

	"github.com/cespare/xxhash/v2"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/torchsnap"
)

// errOther makes the page use the program that reads every format. That program also has the
// error messages about files.
var errOther = errors.New("lab: all")

// read reads native traces and PyTorch's snapshots.
func read(r io.Reader) (*trace.Trace, error) {
	plain := bufio.NewReader(r)
	if head, _ := plain.Peek(2); string(head) == "\x1f\x8b" {
		z, err := gzip.NewReader(plain)
		if err != nil {
			return nil, errOther
		}
		plain = bufio.NewReader(z)
	}
	head, _ := plain.Peek(4096)
	var t *trace.Trace
	err := errOther
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}):
		t, err = trace.Read(plain)
	case torchsnap.Detect(head):
		t, err = torchsnap.Read(plain)
	}
	if err != nil {
		return nil, errOther
	}
	return t, nil
}

func init() { trace.UseZstd(trace.Codec{Decompress: unzstd}) }

// unzstd decompresses a frame with the page's JavaScript, whose decoder has 8 kB. An exception
// there is a panic here, which package trace turns into an error. The page ignores the checksum
// of the frame, so unzstd checks it: it is the low half of the hash of the decompressed bytes
// (RFC 8878, section 3.1.1).
func unzstd(dst, frame []byte) ([]byte, error) {
	const flags, hasSum = 4, 1 << 2
	if len(frame) <= flags+4 || frame[flags]&hasSum == 0 {
		return nil, errOther
	}
	from := js.Global().Get("Uint8Array").New(len(frame))
	js.CopyBytesToJS(from, frame)
	out := dst[:cap(dst)]
	js.CopyBytesToGo(out, js.Global().Call("unzstd", from, len(out)))
	if sum := binary.LittleEndian.Uint32(frame[len(frame)-4:]); sum != uint32(xxhash.Sum64(out)) {
		return nil, errOther
	}
	return out, nil
}

func truncated(error) bool { return false }

// merge fails, because this program reads no profiles, which have the waits to add.
func merge(_, _ *trace.Trace) (*trace.Trace, error) { return nil, errOther }
