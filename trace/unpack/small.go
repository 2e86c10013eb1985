//go:build small

package unpack

import (
	"bufio"
	"errors"
	"io"
)

// A small build, for a web page, unpacks gzip alone.
var errSmall = errors.New("not in this build")

func (u *Reader) newZstd(*bufio.Reader) (io.Reader, error) { return nil, errSmall }

func (u *Reader) newXz(*bufio.Reader, *tailReader) (io.Reader, error) { return nil, errSmall }
