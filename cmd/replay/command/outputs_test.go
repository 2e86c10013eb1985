package command

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/cmd/replay/lab/session"
	"github.com/eagergc/eagergc/cmd/replay/live"
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool/cuda"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// The commands of testdata/outputs.txtar print and write what they did when -update last wrote
// the file: beside each command is a digest of each output. An output that differs is kept in a
// folder, for a comparison with that of another commit.
func TestOutputs(t *testing.T) {
	if runtime.GOOS+runtime.GOARCH != "linuxamd64" {
		t.Skip("errors have other words, and another processor may round the last digit of a figure otherwise")
	}
	path, err := filepath.Abs("testdata/outputs.txtar")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	useFakeGo(t)
	t.Chdir(t.TempDir())
	for _, f := range append(archive.Files, madeUp()...) {
		os.MkdirAll(filepath.Dir(f.Name), 0o755)
		os.WriteFile(f.Name, f.Data, 0o644)
	}
	var now strings.Builder
	for line := range strings.Lines(string(archive.Comment)) {
		command, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		if command == "" || command[0] == '#' {
			now.WriteString(line)
			continue
		}
		outputs := outputsOf(t, command)
		var digests []string
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			if len(outputs[name]) > 0 {
				digests = append(digests, fmt.Sprintf("%s %.4x", name, sha256.Sum256(outputs[name])))
			}
		}
		got := strings.Join(digests, ", ")
		if fmt.Fprintf(&now, "%s => %s\n", command, got); got == want || *update {
			continue
		}
		dir, err := os.MkdirTemp("", "replay-outputs-")
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range outputs {
			os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		t.Errorf("replay %s\n%s\nwant\n%s\nThe outputs are in %s.", command, got, want, dir)
	}
	if archive.Comment = []byte(now.String()); *update {
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// madeUp are two recordings: a program of steps with a device, and a live run whose cycles follow
// refusals, run in waits or run beside work, some of them soon after another. A few take longer.
func madeUp() []txtar.File {
	r := rand.New(rand.NewPCG(1, 2))
	const head = recording.TextHeader + "\nstart 2026-01-01T00:00:00Z\n"
	steps, live := head, head+"meta \"heap\" \"1048576\"\n0 mark bytes=3 label=\"gc: processors\"\n"
	add := func(to *string, format string, args ...any) { *to += fmt.Sprintf(format+"\n", args...) }
	var sizes [1200]int
	now, late, next := 0, 0, 0
	for i := range sizes {
		now += 10_000 + r.IntN(80_000)
		sizes[i] = 512 << r.IntN(9)
		if i < 400 {
			add(&steps, `%d alloc id=%d bytes=%d space=device0 label="site %d"`, now, i, sizes[i], i%5)
			if i%9 > 0 && i > 9 {
				add(&steps, "%d drop id=%d bytes=%d space=device0", now, i-10, sizes[i-10])
			}
			if i%25 == 24 {
				add(&steps, `%d sync duration=%d label="wait %d"`, now, 10_000+r.IntN(500_000), i%2)
				now += 400_000
			}
		}
		gap := int(1e5 * math.Exp(5*r.Float64()))
		add(&live, "%d alloc id=%d bytes=%d", late, i, sizes[i])
		if late += gap; i%6 > 0 {
			continue
		}
		dead, kind := i-r.IntN(9), r.IntN(4)
		length := 500_000 + r.IntN(30_000) + 2000*max(0, dead-next) + max(0, 200_000-gap)
		if r.IntN(20) == 0 {
			length += 800_000
		}
		switch kind {
		case 1:
			add(&live, "%d refuse bytes=512 duration=40000", late-1)
			add(&live, "%d refuse bytes=512 duration=%d aux=4", late, length+1000)
			add(&live, "%d mark duration=%d label=\"exposed pause\"", late, length)
		case 2:
			add(&live, "%d sync duration=%d", late, length/2)
			add(&live, "%d mark duration=%d label=\"exposed pause\"", late, length+50_000)
		default:
			length = length * 7 / 4
		}
		add(&live, "%d cycle bytes=%d duration=%d aux=%d", late, 512*max(0, dead-next), length, kind%2)
		for late += length; next < dead; next++ {
			add(&live, "%d free id=%d bytes=%d aux=1", late, next, sizes[next])
		}
		add(&live, "%d mark bytes=%d label=\"gc: slowdown beside a cycle, millionths\"", late, 100*i)
	}
	return []txtar.File{{Name: "steps.txt", Data: []byte(steps)}, {Name: "run.txt", Data: []byte(live)}}
}

// made are outputs of made-up results, of commands that measure or build. Their lines are in
// parentheses.
var made = map[string]func(w io.Writer){
	"(live)": func(w io.Writer) {
		r := live.Report{Result: sim.Result{Trace: "t", Policy: "p", LimitFactor: 1.5, LimitBytes: 3000, Cycle: 4e6, Ladder: 5, Collections: 6, RefusalCollections: 7, FailedAllocs: 8, ExposedPause: 9e6, MaxPause: 10e6,
			GCBusy: 11e6, PeakLive: 12e3, MeanLive: 13e3, MeanGarbage: 14e3, Span: 15e6, Elapsed: 16e6}, Natural: 17, Late: 18e6, Reserved: 19e3, Work: live.Work{Alone: 20, LostAlone: 1, Beside: 22, LostBeside: 12, Overlap: 24}, Stats: gc.Stats{Slowdown: 0.26}}
		log := &sim.Log{Pauses: append(slices.Repeat([]sim.Pause{{Length: 27e6}}, 150), sim.Pause{Length: 28e6})}
		other := newLiveRun(sim.Result{Trace: "s", Policy: "sim:p", LimitFactor: 2, Collections: 30, RefusalCollections: 31, FailedAllocs: 32, ExposedPause: 33e6, PeakLive: 34e3, Elapsed: 35e6}, log)
		other.Pace = 1.25
		for _, s := range []*liveRun{nil, other} {
			writeLive(w, &sim.Workload{PeakReachable: 2000}, &r, s, log)
			writeLiveJSON(w, &r, log, s)
		}
		writeCalls(w, []cuda.CallCount{{Name: "cuMemMap", Calls: 36, Time: 37e6}})
	},
	"(simulated)": func(w io.Writer) {
		var out, told bytes.Buffer
		for _, how := range []string{"cudajl", "cudajl:overlap=true", "cudajl:overlap=true --compute --waits elastic"} {
			run(context.Background(), wordsOf("live steps.txt --speed 0 --ballast 0 --touch 0 --scale 3 --machine machine.json --measure 0 --limit 1.2x --json --policy "+how), &out, &told)
		}
		fmt.Fprint(w, regexp.MustCompile(`(?m)^.*"reserved_bytes.*\n`).ReplaceAllString(out.String(), ""), &told)
	},
	"(machine)": func(w io.Writer) {
		m, fit := &sim.Machine{About: "made up", Start: 1e6, Mark: sim.Linear{Base: 2e6, PerObject: 3, PerGiB: 4}, Sweep: sim.Linear{Base: 5e6}, Settle: sim.Linear{PerObject: 6, PerGiB: 7}, Ladder: 8e6, Map: sim.Linear{Base: 9, PerObject: 10},
			Heap: 11, After: sim.Curve{{At: 12e6, Factor: 1.3}, {At: 14e6, Factor: 1.5}}, Stretch: 1.6, Slowdown: 0.17, Alloc: sim.Linear{Base: 18}, Stall: sim.Stall{Share: 0.19, Length: []float64{20e6, 21e6, 22e6}}}, live.Fit{Cycles: 23, Total: 0.24, Half: 0.27, Most: 0.28}
		writeMachine(w, m, fit)
		cost, text := measuredCost(m, fit, 29<<20)
		fmt.Fprintln(w, cost, regexp.MustCompile("; .*? beside").ReplaceAllString(text, "")) // this machine
		writeAdvice(w, &sim.Workload{Name: "t"}, &experiment.Advice{Policy: "p", Limit: 30, Reachable: 31, Memory: 32, Choice: experiment.Option{Policy: "p", Exposed: 33, P99: 34, Pauses: 35, Lost: 0.36, Core: 0.37},
			Others: []experiment.Option{{Policy: "never", Exposed: 38, Refusals: 39, Failed: 40, Slowed: 41}}}, sureText(&experiment.Advice{Variants: 42, Unmet: 1}, nil), "from")
	},
	"(lab)": func(w io.Writer) {
		for _, whole := range []bool{false, true} {
			if p, err := labPage(&labBuild{glue: "glue", program: []byte("a program")}, whole); err == nil {
				p.Live.Memory = 1 << 34
				for _, part := range p.Live.Parts[1:] {
					fmt.Fprintf(w, "%s %x\n", part.Name, sha256.Sum256([]byte(part.Text)))
				}
				p.Live.Parts = nil
				p.write(w)
			}
		}
		if taken, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
			defer taken.Close()
			fmt.Fprintln(w, serveLab(newCompare(), new(labBuild), taken.Addr().String(), false) != nil)
		}
	},
	"(session)": func(w io.Writer) {
		s, out := new(session.Session), json.NewEncoder(w)
		say := func(v any, err error) { fmt.Fprintln(w, errors.Join(err, out.Encode(v))) }
		file, _ := os.Open("steps.txt")
		defer file.Close()
		q := session.Setting{Policies: []string{"never", "periodic:200us", "pacer", "sqrt", "optimum-overlap"}, Limits: []string{"0.9x", "1.3x", "50MiB"}, Cycle: "500us", Ladder: "3ms"}
		_, err := s.Sweep(q, nil, nil)
		fmt.Fprintln(w, err)
		say(s.Info())
		say(s.Load([]session.Source{{Name: "steps.txt", From: file}}))
		for q.Limit = range q.Limits {
			say(s.View(q, nil, 0.25*float64(q.Limit)))
			say(s.Run(q, 50))
		}
		known, err := s.Sweep(q, nil, nil)
		known[0].Collections = 12345
		again, err2 := s.Sweep(q, known, nil)
		fmt.Fprintln(w, again[0].Collections, len(again), err, err2)
		var told atomic.Int64
		say(s.Advise(q, 0.02, 2, 1<<30, func(float64) { told.Add(1) }))
		fmt.Fprintln(w, told.Load())
		say(s.Advise(q, 0, 1, 1<<10, nil))
		for _, change := range []func(*session.Setting){
			func(q *session.Setting) { q.Policies = q.Policies[4:] }, func(q *session.Setting) { q.Policies = nil }, func(q *session.Setting) { q.Policies = []string{"cudjl"} }, func(q *session.Setting) { q.Limits[2] = "2" },
			func(q *session.Setting) { q.Limits = q.Limits[:1] }, func(q *session.Setting) { q.Limit = -1 }, func(q *session.Setting) { q.Cycle = "1" }, func(q *session.Setting) { q.Ladder = "1" },
		} {
			q := q
			q.Limits = slices.Clone(q.Limits)
			change(&q)
			say(s.View(q, nil, 0))
			say(s.Advise(q, 0, 0, 1<<10, nil))
		}
	},
	"(curves)": func(w io.Writer) {
		curves := []chart.Curve{{Name: "one", Levels: []sim.Level{{}, {At: 3e6, Live: 5000, Garbage: 1000}}}, {Name: "two", Levels: []sim.Level{{Live: 900}, {At: 5e6, Live: 4500}}}}
		chart.Curves("curves", "a note", curves).Write(w, "svg")
	},
}

// outputsOf runs a command and returns what it printed and the files in the folder out, which it
// removes. Outputs are without compression, names of tools, and progress.
func outputsOf(t *testing.T, command string) map[string][]byte {
	var stdout, stderr bytes.Buffer
	if make := made[command]; make != nil {
		make(&stdout)
		text, _ := plain(".html", stdout.Bytes())
		return map[string][]byte{"text": text}
	}
	if status := run(t.Context(), wordsOf(command), &stdout, &stderr); status != 0 {
		fmt.Fprintln(&stderr, "status", status)
	}
	maxMemory = 0
	all := map[string][]byte{"stdout": stdout.Bytes(), "stderr": ofTools.ReplaceAll(stderr.Bytes(), nil)}
	filepath.WalkDir("out", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err == nil {
				data, err = plain(path, data)
			}
			if filepath.Ext(path) == ".svg" && bytes.Contains(data, []byte("NaN")) {
				t.Errorf("%s: %s has what is no number", command, path)
			}
			if all[d.Name()] = data; err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	os.RemoveAll("out")
	return all
}

var (
	machine, _ = pressure.HostMemory()
	ofTools    = regexp.MustCompile(`<dt>(?:replay|machine)</dt><dd>[^<]*|replay: [^\n]* so far[^\n]*\n` + fmt.Sprintf("|data-memory=\"%d\"", machine.Total))
	streams    = regexp.MustCompile(`(?s)stream\r?\n(x.*?)\r?\nendstream`)
)

// plain returns what is in a file.
func plain(path string, data []byte) ([]byte, error) {
	var b bytes.Buffer
	switch filepath.Ext(path) {
	case ".arrows":
		t, err := trace.Read(bytes.NewReader(data))
		if err == nil {
			err = recording.WriteText(&b, t)
		}
		return b.Bytes(), err
	case ".gz":
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			_, err = io.Copy(&b, r)
		}
		return b.Bytes(), err
	case ".pdf":
		for _, m := range streams.FindAllSubmatch(data, -1) {
			if r, err := zlib.NewReader(bytes.NewReader(m[1])); err == nil {
				io.Copy(&b, r)
			}
		}
		return b.Bytes(), nil
	case ".html":
		head, rest, _ := bytes.Cut(data, []byte(`id="data">"`))
		packed, tail, _ := bytes.Cut(rest, []byte(`"<`))
		if r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(packed))); err == nil {
			io.Copy(&b, r)
		}
		return slices.Concat(ofTools.ReplaceAll(head, nil), b.Bytes(), ofTools.ReplaceAll(tail, nil)), nil
	}
	return data, nil
}
