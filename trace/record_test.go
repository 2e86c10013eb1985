package trace_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eagergc/eagergc/trace"
)

// Environment of a child: this test binary, started as a program that records.
const (
	envRecord = "EAGERGC_TEST_RECORD" // the file to record to
	envLimit  = "EAGERGC_TEST_FSIZE"  // the most bytes of a file
	envKills  = "EAGERGC_TEST_KILLS"  // for the test: how many children to kill
	envWhole  = "EAGERGC_TEST_WHOLE"  // write a file at once, do not record
	envUsual  = "EAGERGC_TEST_USUAL"  // the recorder's usual interval, and no flush but that; for the test: so long they live
)

func TestMain(m *testing.M) {
	if path := os.Getenv(envRecord); path != "" {
		os.Exit(child(path))
	}
	status := m.Run()
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(20 * time.Second); status == 0; time.Sleep(time.Millisecond) { // all recorders end
		stacks = stacks[:runtime.Stack(stacks[:cap(stacks)], true)]
		if !bytes.Contains(stacks, []byte("trace.(*Recorder).run")) {
			break
		}
		if time.Now().After(end) {
			fmt.Printf("a recorder was not closed:\n%s\n", stacks)
			status = 1
		}
	}
	os.Exit(status)
}

// child records until it is killed, or until recording fails: then it goes on
// without, and says why on standard output. It counts its events in the order
// of their IDs, and says after a flush how many there were.
func child(path string) int {
	if limit, err := strconv.ParseUint(os.Getenv(envLimit), 10, 64); err == nil {
		limitFileSize(limit)
	}
	if os.Getenv(envWhole) != "" {
		fmt.Println(trace.WriteFile(path, steady(10_000)))
		return 0
	}
	interval := 10 * time.Millisecond
	if os.Getenv(envUsual) != "" {
		interval = 0
	}
	r, err := trace.Record(path, &trace.Trace{Name: "child"}, trace.RecorderConfig{Interval: interval})
	if err != nil {
		os.Stdout.WriteString(err.Error())
		return 0
	}
	os.Stdout.WriteString("recording\n")
	label, recorded := r.Label("wait"), 0
	record := func(e trace.Event) {
		e.Time = int64(r.Now())
		r.Record(e)
		recorded++
	}
	for id := uint64(1); r.Err() == nil; id++ {
		record(trace.Event{Kind: trace.Alloc, ID: id, Bytes: int64(rand.IntN(1 << 20))})
		if id%64 == 0 {
			record(trace.Event{Kind: trace.Sync, Aux: label})
			time.Sleep(50 * time.Microsecond)
		}
		if id%1000 == 0 && interval > 0 && r.Flush() == nil && os.Getenv(envLimit) == "" {
			fmt.Println(id)
		}
	}
	for range 1000 { // the program goes on
		record(trace.Event{Kind: trace.Mark})
	}
	err = r.Close()
	fmt.Printf("%v\n%d recorded, %d lost\n", err, recorded, r.Lost())
	return 0
}

// TestKill kills a recording program at random moments. Everything is read up to
// the last flush, and nothing lies under the final name.
func TestKill(t *testing.T) {
	kills := 30
	if n, err := strconv.Atoi(os.Getenv(envKills)); err == nil {
		kills = n
	} else if testing.Short() {
		kills = 5
	}
	dir := t.TempDir()
	events, cuts := 0, 0
	var losses []time.Duration
	for range kills {
		path := filepath.Join(dir, "run.arrows")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envRecord+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(out)
		said.ReadString('\n') // it has begun
		longest := 100 * time.Millisecond
		if usual, err := time.ParseDuration(os.Getenv(envUsual)); err == nil {
			longest = usual
		}
		life := time.Duration(rand.Int64N(int64(longest)))
		time.Sleep(life)
		cmd.Process.Kill()
		killed := time.Now()
		flushed := lastNumber(said)
		cmd.Wait()
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("a killed recording is at its final name: %v", err)
		}
		n, last, cut := checkKilled(t, path+".partial", flushed)
		events += n
		losses = append(losses, min(killed.Sub(last), life))
		if cut {
			cuts++
		}
		os.Remove(path + ".partial")
	}
	slices.Sort(losses)
	t.Logf("%d children killed, %d events read, %d files cut inside a batch; lost before the kill: median %v, worst %v",
		kills, events, cuts, losses[kills/2], losses[kills-3:])
	if events == 0 {
		t.Error("no events in any file")
	}
}

// lastNumber returns the number on the last whole line, or 0.
func lastNumber(r *bufio.Reader) (n uint64) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return n
		}
		if k, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64); err == nil {
			n = k
		}
	}
}

// checkKilled reads a file that was cut off. Its events have no gap, and all
// that the program knew to be flushed are there. It returns when the last was recorded.
func checkKilled(t *testing.T, path string, flushed uint64) (events int, last time.Time, cut bool) {
	t.Helper()
	tr, err := trace.ReadFile(path)
	var te *trace.TruncatedError
	if !errors.As(err, &te) {
		t.Fatalf("after %d events were flushed: %v", flushed, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if te.Events != len(tr.Events) || te.Offset > info.Size() || tr.Start.IsZero() {
		t.Fatalf("%v, with %d events in %d bytes, from %v", te, len(tr.Events), info.Size(), tr.Start)
	}
	if err := tr.Validate(); err != nil {
		t.Fatal(err)
	}
	next := uint64(1)
	for _, e := range tr.Events {
		if e.Kind == trace.Mark {
			t.Skip("the machine is too busy to write all events")
		}
		if e.Kind != trace.Alloc {
			continue
		}
		if e.ID != next {
			t.Fatalf("event %d follows %d", e.ID, next-1)
		}
		next++
	}
	if next <= flushed {
		t.Errorf("%d events were flushed, and %d read", flushed, next-1)
	}
	last = tr.Start
	if n := len(tr.Events); n > 0 {
		last = last.Add(time.Duration(tr.Events[n-1].Time))
	}
	return len(tr.Events), last, te.Offset < info.Size()
}

// run starts a child and returns what it says after it has begun to record.
func run(t *testing.T, path string, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), envRecord+"="+path), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimPrefix(string(out), "recording\n")
}

// TestDiskFull: where no more can be written the program goes on, is told once, with the
// system's error, and what was written is read. No event is counted twice or not at all.
func TestDiskFull(t *testing.T) {
	if !canLimitFileSize {
		t.Skip("needs a limit on the size of files: not on this system")
	}
	path := filepath.Join(t.TempDir(), "run.arrows")
	said := run(t, path, envLimit+"=2000000") // room for several batches, however late they are on a busy machine
	if !strings.Contains(said, syscall.EFBIG.Error()) || !strings.Contains(said, "trace: write at event ") {
		t.Errorf("the program says %q", said)
	}
	tr, err := trace.ReadFile(path + ".partial")
	if !errors.Is(err, trace.ErrTruncated) || len(tr.Events) == 0 {
		t.Errorf("%v", err)
	}
	if n := strings.Count(said, "the recording has failed"); n != 1 {
		t.Errorf("the log has it %d times: %q", n, said)
	}
	var recorded, lost int
	if _, err := fmt.Sscanf(said[strings.LastIndex(strings.TrimSpace(said), "\n")+1:], "%d recorded, %d lost", &recorded, &lost); err != nil {
		t.Errorf("%v: %q", err, said)
	}
	kept := 0
	for _, e := range tr.Events {
		if e.Kind != trace.Mark { // of what a busy machine has lost before
			kept++
		}
	}
	if kept+lost != recorded || lost < 1000 {
		t.Errorf("%d events were recorded, %d are read and %d are lost", recorded, kept, lost)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a recording that failed is at its final name: %v", err)
	}
}

// TestDiskFullBetweenBatches: one flush is many batches, of which the first were written.
func TestDiskFullBetweenBatches(t *testing.T) {
	tr := steady(10_000)
	w, err := trace.NewWriter(&room{left: 300_000}, &trace.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	if written, err := w.WriteBatch(tr.Events, tr.Labels); !errors.Is(err, syscall.ENOSPC) || written == 0 || written%2048 != 0 {
		t.Errorf("error %v after %d events", err, written)
	}
}

// A room takes so many bytes.
type room struct{ left int }

func (r *room) Write(b []byte) (int, error) {
	if r.left -= len(b); r.left < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

func TestDiskFullFromTheStart(t *testing.T) {
	w, err := trace.NewWriter(full(t), &trace.Trace{})
	if !errors.Is(err, syscall.ENOSPC) || w != nil {
		t.Errorf("%v", err)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		dir = "/sys" // root writes anywhere else
	}
	path := filepath.Join(dir, "run.arrows")
	r, err := trace.Record(path, &trace.Trace{}, trace.RecorderConfig{})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	r.Record(trace.Event{}) // r is nil: the app goes on without
}

// A file that is cut at a quarter gives a quarter of its events, but for a batch.
func TestCutAtQuarter(t *testing.T) {
	tr := steady(40_000)
	var file bytes.Buffer
	if err := trace.Write(&file, tr); err != nil {
		t.Fatal(err)
	}
	got, err := trace.Read(bytes.NewReader(file.Bytes()[:file.Len()/4]))
	if !errors.Is(err, trace.ErrTruncated) {
		t.Fatal(err)
	}
	if n := len(got.Events); n < len(tr.Events)/5 || n > len(tr.Events)/3 {
		t.Errorf("%d of %d events", n, len(tr.Events))
	}
}

// TestRecord: a recording that ends well is whole, under its name.
func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.arrows")
	before := time.Now()
	r, err := trace.Record(path, &trace.Trace{Name: "app", Meta: map[string]string{"policy": "never"}}, trace.RecorderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for id := range uint64(1000) {
		r.Record(trace.Event{Time: int64(r.Now()), Kind: trace.Alloc, ID: id, Bytes: 512, Aux: r.Label("site " + strconv.FormatUint(id%3, 10))})
		if id%100 == 0 {
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	tr, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if tr.Name != "app" || tr.Meta["policy"] != "never" || tr.Start.Before(before.Add(-time.Second)) || len(tr.Events) != 1000 {
		t.Errorf("%q %v %v, %d events", tr.Name, tr.Meta, tr.Start, len(tr.Events))
	}
	if want := []string{"", "site 0", "site 1", "site 2"}; !slices.Equal(tr.Labels, want) {
		t.Errorf("labels %q", tr.Labels)
	}
}
