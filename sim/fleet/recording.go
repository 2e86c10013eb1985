package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats"
	"github.com/eagergc/eagergc/trace/spill"
)

// A Recording is one file of a fleet, ready to be replayed. It is immutable and safe for
// concurrent use until it is closed.
type Recording struct {
	Hash     string // SHA-256 of the file, in hexadecimal
	Bytes    int64  // of the file
	Workload *sim.Workload
}

// Hash reads r to its end and returns the hash by which a recording is known, and how
// many bytes it has.
func Hash(r io.Reader) (hash string, bytes int64, err error) {
	h := sha256.New()
	bytes, err = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), bytes, err
}

// Read reads a recording of any format to its end, and compiles the space in which it
// allocates most. Memory is the bytes that it may need, as [formats.Opener] says. An
// error gives its place in the file, and does not name the file.
func Read(r io.Reader, memory int64) (*Recording, error) {
	h := sha256.New()
	counted := &counter{from: io.TeeReader(r, h)}
	t, err := formats.Opener{Memory: memory}.Read(counted)
	if counted.err != nil {
		return nil, &storageError{fmt.Errorf("byte %d: %w", counted.n, counted.err)}
	}
	if err != nil {
		return nil, err
	}
	defer spill.FreeItems(t.Events)
	if _, err := io.Copy(io.Discard, counted); err != nil {
		return nil, &storageError{fmt.Errorf("byte %d: %w", counted.n, err)}
	}
	t.Name = "recording" // what the file says it is called is no part of the answer
	w, err := sim.Compile(t, sim.SpaceOf(t))
	if err != nil {
		return nil, err
	}
	return &Recording{Hash: hex.EncodeToString(h.Sum(nil)), Bytes: counted.n, Workload: w}, nil
}

// Close frees what the recording holds outside of memory. Nobody may use it any more.
func (r *Recording) Close() { r.Workload.Free() }

// A counter counts what is read, and remembers why no more could be.
type counter struct {
	from io.Reader
	n    int64
	err  error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// Features say what kind of job a recording is of. They do not depend on a policy.
type Features struct {
	Allocs         int64 `json:"allocs"`
	Drops          int64 `json:"drops"` // explicit frees included
	Syncs          int64 `json:"syncs"`
	AllocatedBytes int64 `json:"allocated_bytes"`
	PeakReachable  int64 `json:"peak_reachable_bytes"`
	Span           int64 `json:"span_ns"`
	Wait           int64 `json:"wait_ns"`
}

func featuresOf(w *sim.Workload) Features {
	return Features{
		Allocs: int64(w.Allocs), Drops: int64(w.Drops), Syncs: int64(w.Syncs), AllocatedBytes: w.AllocatedBytes,
		PeakReachable: w.PeakReachable, Span: int64(w.Span), Wait: int64(w.Wait),
	}
}

// Group names the like jobs that a job belongs to: how much it needs, how often it
// allocates that anew, and how much of its time it waits. A job's group does not
// depend on the other jobs, so groups merge exactly; there are at most 48.
func (f *Features) Group() string {
	size := step(float64(f.PeakReachable), []float64{64 << 20, 1 << 30, 8 << 30}, []string{"under 64 MiB", "64 MiB to 1 GiB", "1 to 8 GiB", "over 8 GiB"})
	seconds := float64(max(1, f.Span)) / 1e9
	turns := float64(f.AllocatedBytes) / float64(max(1, f.PeakReachable)) / seconds
	churn := step(turns, []float64{1, 10, 100}, []string{"anew under once a second", "anew 1 to 10 times a second", "anew 10 to 100 times a second", "anew over 100 times a second"})
	wait := step(float64(f.Wait)/float64(max(1, f.Span)), []float64{0.01, 0.3}, []string{"no waits", "some waits", "mostly waits"})
	return size + ", " + churn + ", " + wait
}

// step returns the name of the interval that x is in.
func step(x float64, bounds []float64, names []string) string {
	i := 0
	for i < len(bounds) && x >= bounds[i] {
		i++
	}
	return names[i]
}
