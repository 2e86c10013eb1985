package formats

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

// packed returns text as it is, and packed with what the libraries write.
func packed(tb testing.TB, text []byte) map[string][]byte {
	tb.Helper()
	files := map[string][]byte{"": text}
	for method, open := range map[string]func(io.Writer) (io.WriteCloser, error){
		"gzip": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"zstd": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
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

// xzFile returns a file of testdata. xz 5.4 packed text (with small blocks), 80 MiB of zeros (bomb), and 1 MiB of zeros with a
// dictionary of 64 MiB (window).
func xzFile(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".xz"))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func unpack(file []byte, b *recording.Budget, to io.Writer) (n int64, method string, err error) {
	u, err := newUnpacker(bytes.NewReader(file), b)
	if err != nil {
		return 0, "", err
	}
	defer u.close()
	n, err = io.Copy(to, u)
	return n, u.method, err
}

func readAll(file []byte) (text []byte, method string, err error) {
	var b bytes.Buffer
	_, method, err = unpack(file, new(recording.Budget), &b)
	return b.Bytes(), method, err
}

var text = []byte(strings.Repeat("a trace of memory ", 20000))

// allPacked has text in every form that is read.
func allPacked(tb testing.TB) map[string][]byte {
	files := packed(tb, text)
	files["xz"] = xzFile(tb, "text")
	return files
}

func TestWhatIsPackedIsUnpacked(t *testing.T) {
	for method, file := range allPacked(t) {
		got, m, err := readAll(file)
		if err != nil || m != method || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes as %q, %v", method, len(got), m, err)
		}
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
	for _, short := range []string{"", "a", "\x1f"} {
		if got, m, err := readAll([]byte(short)); string(got) != short || m != "" || err != nil {
			t.Errorf("%q: got %q as %q, %v", short, got, m, err)
		}
	}
}

// TestBomb: a stream unpacks to 64 MiB and 100 times its packed bytes, and to more only if its reader may hold more.
func TestBomb(t *testing.T) {
	zeros := make([]byte, 80<<20)
	files := packed(t, zeros)
	files["xz"] = xzFile(t, "bomb")
	for method, file := range files {
		n, _, err := unpack(file, new(recording.Budget), io.Discard)
		most := int64(64<<20 + 100*(len(file)+bufferSize))
		if method != "" && (!errors.Is(err, errUnpacked) || n > most || n < 64<<20) {
			t.Errorf("%s: %d bytes of %d packed ones, %v", method, n, len(file), err)
		}
		if method == "" && err != nil {
			t.Error(err)
		}
		if n, _, err := unpack(file, &recording.Budget{Memory: 200 << 20}, io.Discard); err != nil || n != int64(len(zeros)) {
			t.Errorf("%s: with more memory %d bytes, %v", method, n, err)
		}
	}
}

// TestHeld: what is held of a stream is in proportion to it: 16 MiB, and 30 bytes for each that has arrived.
func TestHeld(t *testing.T) {
	for more, want := range map[int64]error{0: nil, 1: recording.ErrTooLarge} {
		b := new(recording.Budget)
		b.Hold(16<<20 + 30*int64(len(text)) + more)
		b.Hold(-1 << 20) // what was held for a moment counts
		if _, _, err := unpack(text, b, io.Discard); !errors.Is(err, recording.ErrTooLarge) {
			t.Errorf("before all has arrived: %v", err)
		}
		b.Arrived(len(text) - bufferSize)
		if err := b.Err(); !errors.Is(err, want) {
			t.Errorf("%d bytes more: %v, want %v", more, err, want)
		}
		b = &recording.Budget{Memory: 100 << 20}
		b.Hold(100<<20 + more)
		if err := b.Err(); !errors.Is(err, want) {
			t.Errorf("%d bytes above a bound of its own: %v, want %v", more, err, want)
		}
	}
}

// TestWindow: the window that a file asks for is bounded before it is made. More memory allows more.
func TestWindow(t *testing.T) {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for method, file := range map[string][]byte{"zstd": b.Bytes(), "xz": xzFile(t, "window")} {
		for memory, ok := range map[int64]bool{0: false, 32 << 20: false, 64 << 20: true, 1 << 40: true} {
			_, _, err := unpack(file, &recording.Budget{Memory: memory}, io.Discard)
			if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "--max-memory") {
				t.Errorf("%s with %d bytes: %v", method, memory, err)
			}
		}
	}
}

// TestDamagedStreams: a cut is an error, and so is a flipped bit that changes the text.
func TestDamagedStreams(t *testing.T) {
	for method, file := range allPacked(t) {
		if method == "" {
			continue
		}
		for n := 4; n < len(file); n++ {
			if got, _, err := readAll(file[:n]); err == nil {
				t.Fatalf("%s cut after %d of %d bytes: %d bytes and no error", method, n, len(file), len(got))
			} else if !strings.HasPrefix(err.Error(), method) || errors.Is(err, io.EOF) {
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
