//go:build small

package unpack

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
)

// A small build, for a web page, unpacks gzip alone, by Go's own library: it is half
// as large.
var errSmall = errors.New("not in this build")

func newGzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }

func (u *Reader) newZstd(*bufio.Reader) (io.Reader, error) { return nil, errSmall }

func (u *Reader) newXz(*bufio.Reader, *tailReader) (io.Reader, error) { return nil, errSmall }
