package trace_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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
	envWhole  = "EAGERGC_TEST_WHOLE"  // write a file at once, do not record
)

func TestMain(m *testing.M) {
	if path := os.Getenv(envRecord); path != "" {
		os.Exit(child(path))
	}
	os.Exit(m.Run())
}

// child records until it is killed, or until recording fails: then it goes on
// without, and says why on standard output. It counts its events in the order
// of their IDs, and says after a flush how many there were.
func child(path string) int {
	if limit, err := strconv.ParseUint(os.Getenv(envLimit), 10, 64); err == nil {
		signal.Ignore(syscall.SIGXFSZ) // writes past the size fail with EFBIG
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			panic(err)
		}
	}
	if os.Getenv(envWhole) != "" {
		fmt.Println(trace.WriteFile(path, steady(10_000)))
		return 0
	}
	r, err := trace.Record(path, &trace.Trace{Name: "child"}, trace.RecorderConfig{Interval: 10 * time.Millisecond})
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
		if id%1000 == 0 && r.Flush() == nil && os.Getenv(envLimit) == "" {
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
	if testing.Short() {
		kills = 5
	}
	dir, events := t.TempDir(), 0
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
		time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond))))
		cmd.Process.Kill()
		var flushed uint64
		for line, err := said.ReadString('\n'); err == nil; line, err = said.ReadString('\n') {
			if n, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64); err == nil {
				flushed = n
			}
		}
		cmd.Wait()
		if got := names(t, dir); !slices.Equal(got, []string{"run.arrows.partial"}) {
			t.Fatalf("a killed recording leaves %v", got)
		}
		events += checkKilled(t, path+".partial", flushed)
		os.Remove(path + ".partial")
	}
	if events == 0 {
		t.Error("no events in any file")
	}
}

// checkKilled reads a file that was cut off. Its events have no gap, and all
// that the program knew to be flushed are there.
func checkKilled(t *testing.T, path string, flushed uint64) (events int) {
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
	if te.Events != len(tr.Events) || te.Offset > info.Size() || tr.Start.IsZero() || tr.Name != "child" {
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
	return len(tr.Events)
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

// TestFiles: nothing is under the final name before Close, a partial file of an earlier run stays, and a link is replaced.
func TestFiles(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	path := filepath.Join(dir, "run.arrows")
	if err := errors.Join(os.WriteFile(path+".partial", []byte("of an earlier run"), 0o644), os.WriteFile(outside, []byte("precious"), 0o644), os.Symlink(outside, path)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{10, 20} { // the second replaces the first
		tr := steady(n)
		tr.Name = ""
		f, err := trace.Create(path, tr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteBatch(tr.Events, tr.Labels); err != nil {
			t.Fatal(err)
		}
		if got, want := names(t, dir), []string{"run.arrows", "run.arrows.2.partial", "run.arrows.partial"}; !slices.Equal(got, want) {
			t.Errorf("before Close: %v, want %v", got, want)
		}
		if got, err := trace.ReadFile(path + ".2.partial"); !errors.Is(err, trace.ErrTruncated) || len(got.Events) != n {
			t.Errorf("partial file: %v", err)
		}
		for range 2 {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := names(t, dir), []string{"run.arrows", "run.arrows.partial"}; !slices.Equal(got, want) {
			t.Errorf("after Close: %v, want %v", got, want)
		}
		if got, err := trace.ReadFile(path); err != nil || len(got.Events) != n || got.Name != "run" {
			t.Errorf("%v", err)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "precious" {
		t.Errorf("the link was followed: %q, %v", b, err)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestErrorsNameTheFile: a file that is not there, is no trace, cannot be created, or was renamed while it was written. A file that could not be
// written whole is not there.
func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.b.arrows")
	is := func(err error, want string, kind error) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), path[:len(dir)]) && kind == nil || kind != nil && !errors.Is(err, kind) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, err := trace.ReadFile(path)
	is(err, "trace: open "+path+": ", fs.ErrNotExist)
	is(trace.WriteFile(filepath.Join(dir, "no", "run.arrows"), steady(1)), "trace: open ", fs.ErrNotExist)
	is(trace.WriteFile(dir, steady(1)), "trace: create "+dir+": is a directory", nil)
	r, err := trace.Record("/proc/none/run.arrows", &trace.Trace{}, trace.RecorderConfig{})
	is(err, "trace: open /proc/none/run.arrows", fs.ErrNotExist)
	r.Record(trace.Event{}) // r is nil: the program goes on without
	if said := run(t, path, envLimit+"=10"); !strings.HasPrefix(said, "trace: write at event 0: write "+path+".partial: ") || !strings.HasSuffix(said, "("+path+")") {
		t.Errorf("of 10 bytes: %q", said)
	}
	if said := run(t, path, envLimit+"=20000", envWhole+"=1"); !strings.Contains(said, "trace: write at event ") {
		t.Errorf("of 20,000 bytes: %q", said)
	}
	if got := names(t, dir); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
	if err := os.WriteFile(path, []byte("id,time,size\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = trace.ReadFile(path)
	is(err, path+": trace: byte 0: ", nil)
	f, err := trace.Create(path, steady(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".partial", path); err != nil {
		t.Fatal(err)
	}
	is(f.Close(), "trace: "+path+".partial: rename ", fs.ErrNotExist)
	if tr, err := trace.ReadFile(path); err != nil || tr.Name != "steady" {
		t.Errorf("a name of its own: %v", err)
	}
}

// TestWhatIsNoRegularFile is written to as it is, and stays: a pipe, a device, and a link to a file below /proc.
func TestWhatIsNoRegularFile(t *testing.T) {
	dir := t.TempDir()
	pipe, plain := filepath.Join(dir, "pipe.arrows"), filepath.Join(dir, "plain")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Skipf("needs pipes with a name: %v", err)
	}
	read := make(chan error)
	go func() {
		tr, err := trace.ReadFile(pipe)
		if err == nil && len(tr.Events) != 20 {
			err = fmt.Errorf("%d events", len(tr.Events))
		}
		read <- err
	}()
	if err := trace.WriteFile(pipe, steady(20)); err != nil {
		t.Error(err)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
	file, err := os.Create(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := trace.WriteFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), steady(30)); err != nil {
		t.Error(err)
	}
	if tr, err := trace.ReadFile(plain); err != nil || len(tr.Events) != 30 {
		t.Errorf("through a link of the system: %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"pipe.arrows", "plain"}) {
		t.Errorf("beside the pipe: %v", got)
	}
	if err := trace.WriteFile("/dev/full", steady(1)); !errors.Is(err, syscall.ENOSPC) || !strings.HasSuffix(err.Error(), "(/dev/full)") {
		t.Errorf("a full disk: %v", err)
	}
}
