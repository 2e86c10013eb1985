package formats

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

// packed returns text packed in every known way, or in some, and as it is.
func packed(tb testing.TB, text []byte, methods ...string) map[string][]byte {
	tb.Helper()
	files := map[string][]byte{"": text}
	for method, open := range map[string]func(io.Writer) (io.WriteCloser, error){
		"gzip": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"zstd": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
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
	u, err := newUnpacker(bytes.NewReader(file), new(recording.Budget))
	if err != nil {
		return nil, "", err
	}
	defer u.close()
	text, err = io.ReadAll(u)
	return text, u.method, err
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
		u, err := newUnpacker(bytes.NewReader(file), new(recording.Budget))
		if err != nil {
			t.Fatal(err)
		}
		head, err := u.peek(4096)
		if err != nil || len(head) != 4096 || !bytes.HasPrefix(text, head) {
			t.Errorf("%s: Peek gives %d bytes, %v", method, len(head), err)
		}
		if all, err := io.ReadAll(u); err != nil || !bytes.Equal(all, text) {
			t.Errorf("%s: %d bytes after Peek, %v", method, len(all), err)
		}
		u.close()
	}
}

// A stream unpacks to 64 MiB and 100 times its packed bytes, and no further unless
// its reader may hold more.
func TestBomb(t *testing.T) {
	zeros := make([]byte, 80<<20)
	files := packed(t, zeros, "gzip", "zstd")
	files[""] = zeros
	for method, file := range files {
		u, err := newUnpacker(bytes.NewReader(file), new(recording.Budget))
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, u)
		u.close()
		if most := int64(freeUnpacked + unpackedRatio*(len(file)+bufferSize)); method != "" && (!errors.Is(err, errUnpacked) || n > most) {
			t.Errorf("%s: %d bytes of %d packed ones, %v", method, n, len(file), err)
		}
		if method == "" && err != nil {
			t.Error(err)
		}
		u, err = newUnpacker(bytes.NewReader(file), &recording.Budget{Memory: 200 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, u); err != nil || n != int64(len(zeros)) {
			t.Errorf("%s: with more memory %d bytes, %v", method, n, err)
		}
		u.close()
	}
}

// What is held of a stream is in proportion to it.
func TestHeld(t *testing.T) {
	u, err := newUnpacker(bytes.NewReader(text), new(recording.Budget))
	if err != nil {
		t.Fatal(err)
	}
	u.Hold(27 << 20) // 16 MiB and 30 x 360,000 bytes is 26.3 MiB
	if _, err := io.ReadAll(u); !errors.Is(err, recording.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

// A window that a file asks for is bounded before it is made; more memory allows more.
func TestWindow(t *testing.T) {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(32<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for memory, ok := range map[int64]bool{0: false, 16 << 20: false, 32 << 20: true} {
		u, err := newUnpacker(bytes.NewReader(b.Bytes()), &recording.Budget{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, u)
		u.close()
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "--max-memory") {
			t.Errorf("with %d bytes: %v", memory, err)
		}
	}
	if _, err := (Opener{}).Read(strings.NewReader("\xfd7zXZ\x00")); err == nil || !strings.Contains(err.Error(), "xz -d") {
		t.Errorf("xz: %v", err)
	}
}

func TestDamaged(t *testing.T) {
	for method, file := range packed(t, text) {
		if method == "" {
			continue
		}
		for n := 4; n < len(file); n++ {
			if got, _, err := readAll(file[:n]); err == nil {
				t.Fatalf("%s cut after %d of %d bytes: %d bytes and no error", method, n, len(file), len(got))
			} else if !strings.HasPrefix(err.Error(), method) {
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

func FuzzUnpack(f *testing.F) {
	for _, file := range packed(f, text[:500]) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		const most = freeUnpacked + unpackedRatio*(1<<20)
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
