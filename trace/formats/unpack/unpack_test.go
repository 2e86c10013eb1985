package unpack

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/eagergc/eagergc/trace/spill"
)

// packed returns text packed in every known way, or in some, and as it is.
func packed(tb testing.TB, text []byte, methods ...string) map[string][]byte {
	tb.Helper()
	files := map[string][]byte{"": text}
	for method, open := range map[string]func(io.Writer) (io.WriteCloser, error){
		"gzip": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"zstd": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
		"xz":   func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
	} {
		if len(methods) > 0 && !slices.Contains(methods, method) {
			continue
		}
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

func readAll(file []byte) (text []byte, method string, err error) {
	u, err := NewReader(bytes.NewReader(file), nil)
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
		got, m, err := readAll(file)
		if err != nil || m != method || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes as %q, %v", method, len(got), m, err)
		}
	}
	for _, short := range []string{"", "a", "\x1f"} {
		if got, m, err := readAll([]byte(short)); string(got) != short || m != "" || err != nil {
			t.Errorf("%q: got %q as %q, %v", short, got, m, err)
		}
	}
}

func TestPeek(t *testing.T) {
	for method, file := range packed(t, text) {
		u, err := NewReader(bytes.NewReader(file), nil)
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

// A stream unpacks to 64 MiB and 100 times its packed bytes, and no further unless
// its reader may hold more.
func TestBomb(t *testing.T) {
	zeros := make([]byte, 80<<20)
	files := packed(t, zeros, "gzip", "zstd")
	files[""] = zeros
	for method, file := range files {
		u, err := NewReader(bytes.NewReader(file), nil)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, u)
		u.Close()
		if most := int64(free + ratio*(len(file)+bufferSize)); method != "" && (!errors.Is(err, ErrTooLarge) || n > most) {
			t.Errorf("%s: %d bytes of %d packed ones, %v", method, n, len(file), err)
		}
		if method == "" && err != nil {
			t.Error(err)
		}
		u, err = NewReader(bytes.NewReader(file), &spill.Store{Memory: 200 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, u); err != nil || n != int64(len(zeros)) {
			t.Errorf("%s: with more memory %d bytes, %v", method, n, err)
		}
		u.Close()
	}
}

// What is held of a stream is in proportion to it.
func TestHeld(t *testing.T) {
	u, err := NewReader(bytes.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	u.Store().Hold(75 << 20) // 64 MiB and 30 x 360,000 bytes is 74.3 MiB
	if _, err := io.ReadAll(u); !errors.Is(err, spill.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

// A window that a file of xz asks for is bounded before it is made.
func TestWindow(t *testing.T) {
	file := slices.Clone(packed(t, text)["xz"])
	if file[14] != 0x21 {
		t.Fatalf("no LZMA2 filter in % x", file[:24])
	}
	file[16] = 40 // 4 GiB
	if _, _, err := readAll(file); err == nil || !strings.Contains(err.Error(), "window of") {
		t.Errorf("%v", err)
	}
}

func TestDamaged(t *testing.T) {
	for method, file := range packed(t, text) {
		if method == "" {
			continue
		}
		for n := 6; n < len(file); n++ {
			if got, _, err := readAll(file[:n]); err == nil {
				t.Fatalf("%s cut after %d of %d bytes: %d bytes and no error", method, n, len(file), len(got))
			} else if !strings.HasPrefix(err.Error(), "unpack: "+method) {
				t.Fatalf("%s cut after %d bytes: error %v", method, n, err)
			}
			bad := bytes.Clone(file)
			bad[n] ^= 0x10
			if got, _, err := readAll(bad); err == nil && !bytes.Equal(got, text) {
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
		const most = free + ratio*(1<<20)
		if len(file) > 1<<20 {
			return
		}
		got, method, err := readAll(file)
		if err == nil && method == "" && !bytes.Equal(got, file) {
			t.Fatal("what is not packed has changed")
		}
		if method != "" && len(got) > most {
			t.Fatalf("%d bytes of %d", len(got), len(file))
		}
	})
}
