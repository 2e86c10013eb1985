package unpack

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// packed returns text packed in every known way, and as it is.
func packed(tb testing.TB, text []byte) map[string][]byte {
	tb.Helper()
	files := map[string][]byte{"": text}
	for method, open := range map[string]func(io.Writer) (io.WriteCloser, error){
		"gzip": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"zstd": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
		"xz":   func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
	} {
		var b bytes.Buffer
		w, err := open(&b)
		if err == nil {
			_, err = w.Write(text)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			tb.Fatal(err)
		}
		files[method] = b.Bytes()
	}
	return files
}

func readAll(file []byte, limit int64) (text []byte, method string, err error) {
	u, err := NewReader(bytes.NewReader(file), limit)
	if err != nil {
		return nil, "", err
	}
	defer u.Close()
	text, err = io.ReadAll(u)
	return text, u.Method(), err
}

var text = []byte(strings.Repeat("a trace of memory ", 20000))

func TestMethods(t *testing.T) {
	for method, file := range packed(t, text) {
		got, m, err := readAll(file, 0)
		if err != nil || m != method || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes as %q, %v", method, len(got), m, err)
		}
	}
	for _, short := range []string{"", "a", "\x1f"} {
		if got, m, err := readAll([]byte(short), 0); string(got) != short || m != "" || err != nil {
			t.Errorf("%q: got %q as %q, %v", short, got, m, err)
		}
	}
}

func TestPeek(t *testing.T) {
	for method, file := range packed(t, text) {
		u, err := NewReader(bytes.NewReader(file), 0)
		if err != nil {
			t.Fatal(err)
		}
		head, err := u.Peek(1 << 20)
		if err != nil || len(head) != 4096 || !bytes.HasPrefix(text, head) {
			t.Errorf("%s: Peek gives %d bytes, %v", method, len(head), err)
		}
		if all, err := io.ReadAll(u); err != nil || !bytes.Equal(all, text) {
			t.Errorf("%s: %d bytes after Peek, %v", method, len(all), err)
		}
		u.Close()
	}
}

func TestLimit(t *testing.T) {
	for method, file := range packed(t, text) {
		if _, _, err := readAll(file, int64(len(text))); err != nil {
			t.Errorf("%s at its limit: %v", method, err)
		}
		_, _, err := readAll(file, int64(len(text))-1)
		if errors.Is(err, ErrTooLarge) != (method != "") {
			t.Errorf("%s over its limit: %v", method, err)
		}
	}
}

func TestDamaged(t *testing.T) {
	for method, file := range packed(t, text) {
		if method == "" {
			continue
		}
		for n := 6; n < len(file); n++ {
			if got, _, err := readAll(file[:n], 0); err == nil {
				t.Fatalf("%s cut after %d of %d bytes: %d bytes and no error", method, n, len(file), len(got))
			} else if !strings.HasPrefix(err.Error(), "unpack: "+method) {
				t.Fatalf("%s cut after %d bytes: error %v", method, n, err)
			}
			bad := bytes.Clone(file)
			bad[n] ^= 0x10
			if got, _, err := readAll(bad, 1<<20); err == nil && !bytes.Equal(got, text) {
				t.Fatalf("%s with a flipped bit in byte %d: other bytes and no error", method, n)
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, file := range packed(f, text[:500]) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		const limit = 1 << 20
		got, method, err := readAll(file, limit)
		if err == nil && method == "" && !bytes.Equal(got, file) {
			t.Fatal("what is not packed has changed")
		}
		if method != "" && len(got) > limit {
			t.Fatalf("%d bytes over the limit", len(got)-limit)
		}
	})
}
