package auto_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/auto"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// The tests start watchers of their own, but for children.
func TestMain(m *testing.M) {
	if child := children[os.Getenv(childVariable)]; child != nil {
		child()
		os.Exit(0)
	}
	auto.Stop()
	m.Run()
}

const childVariable = "EAGERGC_TEST_CHILD"

func goLimit() int64 { return debug.SetMemoryLimit(-1) }

// children are programs that a test starts. They have time for a review.
var children = map[string]func(){
	"lives": func() {
		before := cycles()
		fmt.Println("collector", auto.Collector() != nil)
		time.Sleep(300 * time.Millisecond)
		fmt.Println("stress", cycles() > before+20)
		auto.Stop()
		before = cycles()
		time.Sleep(20 * time.Millisecond)
		fmt.Println("ended", cycles() == before)
	},
	"limits": func() {
		debug.SetMemoryLimit(300 << 20)
		auto.Collector()
		time.Sleep(1500 * time.Millisecond)
		auto.Stop()
		fmt.Println("limit", goLimit())
	},
	"asks": func() { // at each line of its log
		slog.SetDefault(slog.New(asking{slog.NewTextHandler(os.Stderr, nil)}))
		auto.Collector()
		auto.Stop()
		fmt.Println("ended")
	},
	"starves": func() { // of descriptors, at its start
		var files []*os.File
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 32, Max: 32})
		for {
			f, err := os.Open(os.Args[0])
			if err != nil {
				break
			}
			files = append(files, f)
		}
		fmt.Println("collector", auto.Collector() != nil)
		for _, f := range files {
			_ = f.Close()
		}
		fmt.Println("collector", auto.Collector() != nil)
	},
	"stops": func() {
		auto.Stop()
		fmt.Println("limit", goLimit())
		time.Sleep(100 * time.Millisecond)
		fmt.Println("collector", auto.Collector() != nil)
	},
	"leaves": func() {
		auto.Collector()
		time.Sleep(1500 * time.Millisecond)
		fmt.Println("steered", goLimit() < 1<<40)
		auto.Stop()
		fmt.Println("limit", goLimit())
	},
}

// An asking handler asks for the collector at each line.
type asking struct{ slog.Handler }

func (h asking) Handle(ctx context.Context, r slog.Record) error {
	auto.Collector()
	return h.Handler.Handle(ctx, r)
}

func cycles() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

// run is the test's own binary as one of the children; it returns the output.
func run(t *testing.T, child string, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childVariable+"="+child), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// A program that imports the package logs nothing as long as there is nothing to say, and the environment turns it off. Typing errors are logged.
func TestTheEnvironment(t *testing.T) {
	on, off := "collector true\nstress false\nended true\n", "collector false\nstress false\nended true\n"
	for _, c := range []struct {
		env  string
		out  string
		says []string
	}{
		{"EAGERGC=", on, nil}, {"EAGERGC=on", on, nil}, {"EAGERGC=off", off, nil}, {"EAGERGC=OFF", off, nil}, {"EAGERGC=0", off, nil},
		{"EAGERGC=stress", "collector false\nstress true\nended true\n", []string{"eagergc: stress: cycles run as often as they can, which is for tests alone"}},
		{"EAGERGC=of EAGERGC_HOST_HARD_MEMORY_LIMIT=2Gib", on, []string{`EAGERGC="of"`, "2Gib"}},
		{"EAGERGC_HOST_HARD_MEMORY_LIMT=2GiB EAGERGC_LIMIT=5 EAGERGC_DEVICE0_SOFT_MEMORY_LIMIT=1GiB EAGERGCX=1", on, []string{"eagergc: no variable of eagergc has this name, so it has no effect name=EAGERGC_HOST_HARD_MEMORY_LIMT", "name=EAGERGC_LIMIT", "name=EAGERGCX"}},
	} {
		t.Run(c.env, func(t *testing.T) {
			t.Parallel()
			out := run(t, "lives", strings.Fields(c.env)...)
			said := strings.Count(out, " WARN ")
			for _, want := range c.says {
				if !strings.Contains(out, want) {
					t.Errorf("does not say %s", want)
				}
			}
			rest := regexp.MustCompile("(?m)^.* WARN .*\n").ReplaceAllString(out, "") // which may come at any time
			if slow := strings.Replace(c.out, "stress true", "stress false", 1); said != len(c.says) || rest != c.out && rest != slow {
				t.Errorf("%d warnings: %s", said, out)
			}
		})
	}
}

// A handler of log lines may ask for the collector, whatever it is told about.
func TestAHandlerMayAskForTheCollector(t *testing.T) {
	for _, env := range []string{"EAGERGC_TYPO=1", "EAGERGC_POLICY=x", "EAGERGC_HOST_HARD_MEMORY_LIMIT=x", "EAGERGC=stress"} {
		if out := run(t, "asks", env); !strings.Contains(out, "WARN") || !strings.Contains(out, "ended\n") {
			t.Errorf("%s: %s", env, out)
		}
	}
}

// A process without a free descriptor at its start is watched once it has one.
func TestStartsOnceThereIsADescriptor(t *testing.T) {
	if out := run(t, "starves"); out != "collector false\ncollector true\n" {
		t.Error(out)
	}
}

// What the program has set of Go's limit is never changed, and what we have set is put back.
func TestGoMemoryLimitOfTheProgram(t *testing.T) {
	none := fmt.Sprintf("limit %d\n", int64(math.MaxInt64))
	for _, c := range []struct{ child, environment, want string }{
		{"limits", "", fmt.Sprintf("limit %d\n", 300<<20)}, {"stops", "", none + "collector false\n"}, {"leaves", "", "steered true\n" + none}, {"leaves", "off", "steered false\n" + none},
	} {
		t.Run(c.child+c.environment, func(t *testing.T) {
			t.Parallel()
			if out := run(t, c.child, "EAGERGC_HOST_HARD_MEMORY_LIMIT=600MiB", "GOMEMLIMIT="+c.environment); out != c.want {
				t.Errorf("%q, want %q", out, c.want)
			}
		})
	}
}

// Options are obeyed, one watcher runs at a time, and nothing is left after the end.
func TestStart(t *testing.T) {
	t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", "none")
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(logger)
	stop := auto.Start(auto.Options{Limit: 1 << 30})
	first := auto.Collector()
	var late strings.Builder // of a program that sets its log once it knows its flags
	slog.SetDefault(slog.New(slog.NewTextHandler(&late, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for range 20 {
		first.Collect(policy.TriggerExplicit) // which shares a cycle that the policy has asked for meanwhile
	}
	again := auto.Start(auto.Options{Log: logger}) // ends the first one
	if stop(); auto.Collector() == nil || auto.Collector() == first || goLimit() != math.MaxInt64-1 {
		t.Error("the first one's stop ended the second, or that did not begin")
	}
	lib := pressure.NewCounter(t.Name())
	lib.Add(1)
	defer lib.Sub(1)
	again()
	again()
	if auto.Collector() != nil || first.Counters() != nil || goLimit() != math.MaxInt64 || first.Snapshot().Process.Verdict != "" {
		t.Error("it has not ended")
	}
	for _, want := range []string{`level=DEBUG msg="eagergc: on" policy=host limit="1.00 GiB" variables="[EAGERGC_HOST_HARD_MEMORY_LIMIT=none`, `msg="eagergc: on" policy=host limit=none`, "trigger=explicit"} {
		if all := log.String() + late.String(); !strings.Contains(all, want) {
			t.Errorf("no %s in the log: %s", want, all)
		}
	}
	if !strings.Contains(late.String(), "trigger=explicit") {
		t.Errorf("no cycle in the log that was set late: %s", late.String())
	}
	t.Setenv("EAGERGC", "off")
	if auto.Start(auto.Options{})(); auto.Collector() != nil {
		t.Error("it is off")
	}
}

// A program that maps memory and forgets it stays small.
func TestResidentMemoryStaysLow(t *testing.T) {
	defer auto.Start(auto.Options{})()
	const size, total = 4 << 20, 1024 << 20
	var most int64
	outside := func() int64 {
		r, err := pressure.ReadResident()
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, r.Anonymous)
		return r.Anonymous
	}
	begin := outside()
	catchUp := time.Now().Add(time.Minute) // until then a slow machine's cycles and cleanups may
	for range total / size {
		data, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < size; i += os.Getpagesize() {
			data[i] = 1
		}
		runtime.AddCleanup(&struct{ p *byte }{&data[0]}, func(data []byte) { _ = syscall.Munmap(data) }, data)
		for outside() > begin+total/2 && time.Now().Before(catchUp) {
			time.Sleep(time.Millisecond)
		}
	}
	if s := auto.Collector().Stats(); s.Cycles[policy.TriggerPolicy] == 0 || most > begin+total*3/4 || s.Exposed != 0 {
		t.Errorf("at most %d MiB of %d: %+v", most>>20, total>>20, s)
	}
}
