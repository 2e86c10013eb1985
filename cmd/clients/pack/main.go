// Pack compresses a response for each request with the zstd library, each in its own stream. The
// program was written after the rules of gauge and auto were fixed, and no rule was tuned on it.
package main

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"

	"github.com/DataDog/zstd"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const (
	level   = 9
	context = 12 << 20 // approximate bytes that the library holds for a stream of this level
)

func main() {
	frame.Main("pack", frame.Client{Workers: 2, Requests: 240, Start: start})
}

// A stream is a handle to the library's context.
type stream struct{ w *zstd.Writer }

func start(w *frame.Way) (frame.Service, error) {
	text := words(512 << 10)
	return func(i int) error {
		var out counter
		s := &stream{zstd.NewWriterLevel(&out, level)}
		defer frame.Keep(w, s, context, func(w *zstd.Writer) { w.Close() }, s.w)()
		if _, err := io.Copy(s.w, bytes.NewReader(text)); err != nil {
			return err
		}
		if err := s.w.Flush(); err != nil {
			return err
		}
		if out == 0 || int(out) > len(text)/2 {
			return errors.New("the text is not compressed")
		}
		runtime.KeepAlive(s)
		return nil
	}, nil
}

// A counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// words returns a text of n bytes of a thousand words in random order.
func words(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	list := make([][]byte, 1000)
	for i := range list {
		for range 2 + random.IntN(8) {
			list[i] = append(list[i], byte('a'+random.IntN(26)))
		}
	}
	text := make([]byte, 0, n+16)
	for len(text) < n {
		text = append(append(text, list[random.IntN(len(list))]...), ' ')
	}
	return text[:n]
}
