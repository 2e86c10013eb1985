//go:build js && wasm && !small

package main

import (
	"errors"
	"io"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// read reads every format that the command line reads.
func read(r io.Reader) (*trace.Trace, error) { return formats.Opener{}.Read(r) }

func truncated(err error) bool { return errors.Is(err, trace.ErrTruncated) }

func merge(base, sync *trace.Trace) (*trace.Trace, error) { return recording.Merge(base, sync) }
