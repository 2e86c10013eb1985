package kineto

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// A value is read up to its bound, and a file of many is as long as it likes.
func TestLongValue(t *testing.T) {
	for n, ok := range map[int]bool{maxValue / 2: true, 2 * maxValue: false} {
		value := func() io.Reader {
			return io.MultiReader(strings.NewReader(`,{"name":"`), io.LimitReader(letters{}, int64(n)), strings.NewReader(`"}`))
		}
		file := io.MultiReader(strings.NewReader(`[{"name":"cudaStreamSynchronize","ph":"X","ts":5,"dur":1}`), value(), value(), value(), strings.NewReader("]"))
		if _, err := Read(file); ok != (err == nil) || !ok && !errors.Is(err, errValue) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
