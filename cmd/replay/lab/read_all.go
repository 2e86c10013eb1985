//go:build js && wasm && !small

package main

import (
	"errors"
	"io"

	"github.com/eagergc/eagergc/cmd/replay/lab/hand"
	"github.com/eagergc/eagergc/cmd/replay/lab/session"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats"
)

// read reads every format that the command line reads.
func read(r io.Reader) (*trace.Trace, error) { return formats.Opener{}.Read(r) }

func truncated(err error) bool { return errors.Is(err, trace.ErrTruncated) }

// written reads a policy from its source.
func written(text string) (*session.Hand, error) {
	p, err := hand.Parse(text)
	if err != nil {
		return nil, err
	}
	name, err := p.Name()
	return &session.Hand{Name: name, New: p.New, Failed: p.Failed}, err
}
