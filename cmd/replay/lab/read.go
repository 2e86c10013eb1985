//go:build js && wasm && small

package main

import (
	"bytes"
	"errors"
	"io"
	"syscall/js"

	"github.com/eagergc/eagergc/cmd/replay/lab/session"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowlite"
	"github.com/eagergc/eagergc/trace/formats/torchsnap"
	"github.com/eagergc/eagergc/trace/formats/unpack"
)

// errOther sends the page to the program that reads everything: for another format,
// and for the words about what is wrong with a file.
var errOther = errors.New("lab: all")

// read reads native traces and PyTorch's snapshots.
func read(r io.Reader) (*trace.Trace, error) {
	plain, err := unpack.NewReader(r, nil)
	if err != nil {
		return nil, errOther
	}
	defer plain.Close()
	head, _ := plain.Peek(4096)
	var t *trace.Trace
	err = errOther
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}):
		t, err = arrowlite.Read(plain, unzstd)
	case torchsnap.Detect(head):
		t, err = torchsnap.Read(plain)
	}
	if err != nil {
		return nil, errOther
	}
	return t, nil
}

// unzstd has the page unpack a frame: a decoder in JavaScript has 8 kB. What it throws
// is a panic here, which arrowlite takes as an error.
func unzstd(frame []byte, size int) ([]byte, error) {
	from := js.Global().Get("Uint8Array").New(len(frame))
	js.CopyBytesToJS(from, frame)
	out := make([]byte, size)
	js.CopyBytesToGo(out, js.Global().Call("unzstd", from, size))
	return out, nil
}

func truncated(error) bool { return false }

func written(string) (*session.Hand, error) { return nil, errOther }
