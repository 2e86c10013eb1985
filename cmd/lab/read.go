//go:build js && wasm && small

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/eagergc/eagergc/cmd/lab/session"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowlite"
	"github.com/eagergc/eagergc/trace/torchsnap"
)

// errOther sends the page to the program that reads everything: for another format,
// and for the words about what is wrong with a file.
var errOther = errors.New("lab: all")

// read reads native traces and PyTorch's snapshots.
func read(r io.Reader) (*trace.Trace, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	head, _ := b.Peek(4096)
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		plain, err := gzip.NewReader(b)
		if err != nil {
			return nil, errOther
		}
		b = bufio.NewReaderSize(plain, 1<<16)
		head, _ = b.Peek(4096)
	}
	var t *trace.Trace
	err := errOther
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}):
		t, err = arrowlite.Read(b)
	case torchsnap.Detect(head):
		t, err = torchsnap.Read(b)
	}
	if err != nil {
		return nil, errOther
	}
	return t, nil
}

func truncated(error) bool { return false }

func written(string) (*session.Hand, error) { return nil, errOther }
