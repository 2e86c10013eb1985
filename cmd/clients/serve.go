package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/eagergc/eagergc/cmd/clients/frame"
)

// A bed is where and for how long programs run side by side.
type bed struct {
	bundle, out   string
	warm, measure time.Duration // the load begins with warm
	windows       int           // parts of measure, each of which has a row of its own
	wrap          string        // command that runs a program, such as one that limits its memory
}

// bench runs programs in their ways, each on two processors of its own, in another order in each
// round. Of eight processors or more this command has the rest, at least an eighth. It writes the rows
// of each window when the window ends, because a run may be interrupted. A failure does not end the
// others.
func (b bed) bench(programs []program, rounds int) error {
	if err := os.MkdirAll(filepath.Join(b.out, "logs"), 0o777); err != nil {
		return err
	}
	var todo runs
	for _, p := range programs {
		for way := range strings.SplitSeq(p.ways, ",") {
			todo = append(todo, run{client: p.name, way: way})
		}
	}
	n := runtime.NumCPU()
	pairs := max(1, min((n-max(2, n/8))/2, len(todo)))
	if n >= 8 {
		if err := exec.Command(taskset, "-acp", fmt.Sprintf("%d-%d", 2*pairs, n-1), strconv.Itoa(os.Getpid())).Run(); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	var all runs
	var failed []error
	for round := range rounds {
		for batch := range slices.Chunk(todo, pairs) {
			var wait sync.WaitGroup
			for i, k := range rand.New(rand.NewPCG(1, uint64(round))).Perm(len(batch)) {
				r := batch[k]
				r.round = round
				wait.Go(func() {
					p := programs[slices.IndexFunc(programs, func(p program) bool { return p.name == r.client })]
					err := b.serve(r, p, fmt.Sprintf("%d,%d", 2*i, 2*i+1), func(row run) {
						mu.Lock()
						defer mu.Unlock()
						row.print()
						all = append(all, row)
						if err := all.write(b.out, programsFile); err != nil {
							failed = append(failed, err)
						}
					})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						failed = append(failed, fmt.Errorf("%s, way %s: %w", r.client, r.way, err))
					}
				})
			}
			wait.Wait()
		}
	}
	fmt.Print(all.programs())
	return errors.Join(failed...)
}

const taskset = "/usr/bin/taskset"

// serve runs a program once, on its processors, under load. At the end of each window, done gets its
// row.
func (b bed) serve(r run, p program, cpus string, done func(run)) error {
	dir, err := os.MkdirTemp("", p.name)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	log, err := os.Create(filepath.Join(b.out, "logs", strings.ReplaceAll(fmt.Sprintf("%s-%s-%d.log", p.name, r.way, r.round), "/", "_")))
	if err != nil {
		return err
	}
	defer log.Close()
	port, err := freePorts()
	if err != nil {
		return err
	}
	lib := filepath.Join(b.bundle, "lib")
	suffix, variables, _ := strings.Cut(r.way, "+")
	fill := strings.NewReplacer("{port}", strconv.Itoa(port), "{next}", strconv.Itoa(port+1), "{dir}", dir, "{bundle}", b.bundle)
	loader := []string{filepath.Join(lib, "ld-linux-x86-64.so.2"), "--library-path", lib}
	if p.device != "" { // the driver is the machine's, and so are its libraries
		loader = nil
	}
	args := slices.Concat(strings.Fields(b.wrap), []string{taskset, "-c", cpus}, loader, []string{filepath.Join(b.bundle, "bin", p.name+"-"+suffix)}, strings.Fields(fill.Replace(p.args)))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append([]string{"HOME=" + dir, "TMPDIR=" + dir, "GOMAXPROCS=2", "GODEBUG=gctrace=1"}, strings.Fields(fill.Replace(p.env+" "+strings.ReplaceAll(variables, "+", " ")))...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	err = errors.New("")
	for end := time.Now().Add(4 * time.Minute); err != nil && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		err = send(base, request{path: p.ready})
	}
	if err == nil {
		b.load(r, p, base, cmd.Process.Pid, log.Name(), done)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	defer time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() }).Stop()
	return cmp.Or(err, cmd.Wait())
}

// freePorts returns a free port that another free one follows.
func freePorts() (port int, err error) {
	for range 20 {
		var first, second net.Listener
		if first, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			break
		}
		port = first.Addr().(*net.TCPAddr).Port
		second, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		first.Close()
		if err == nil {
			second.Close()
			break
		}
	}
	return port, err
}

var client = http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// send sends a request and reads the whole answer.
func send(base string, q request) error {
	method := http.MethodGet
	if q.body != "" {
		method = http.MethodPost
	}
	ask, err := http.NewRequest(method, base+q.path, strings.NewReader(q.body))
	if err != nil {
		return err
	}
	ask.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(ask)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", q.path, answer.Status)
	}
	return err
}

// load sends requests at random times, which are the same in all ways of a round and independent of
// the answers. The time of a request begins when it is due. Once all requests of a window have been
// answered, done gets its row, unless the program has crashed.
func (b bed) load(r run, p program, base string, pid int, log string, done func(run)) {
	random, begin, each := rand.New(rand.NewPCG(2, uint64(r.round))), time.Now(), b.measure/time.Duration(b.windows)
	ends, over := make(chan func(), b.windows+1), make(chan struct{})
	go func() {
		for end := range ends {
			end()
		}
		close(over)
	}()
	due, first := time.Duration(0), 0.0
	for i := -1; i < b.windows; i++ { // -1 is the warm-up
		row, to, stop := r, b.warm+time.Duration(i+1)*each, make(chan struct{})
		var wait sync.WaitGroup // for requests and readings
		var mu sync.Mutex
		var ms []float64
		var device []reading
		failed := 0.0
		wait.Go(func() {
			before := spent(pid, log)
			row.timeline = watch(begin, stop, 5*time.Millisecond, func() float64 { return resident(pid) })
			row.Report = spent(pid, log)
			for c := range row.Report {
				row.Report[c] -= before[c]
			}
		})
		if p.device != "" {
			wait.Go(func() {
				device = watch(begin, stop, 100*time.Millisecond, func() float64 { return inUse(base + p.device) })
			})
		}
		for ; due < to; due += time.Duration(random.ExpFloat64() / p.rate * float64(time.Second)) {
			q, at := p.next(random), begin.Add(due)
			time.Sleep(time.Until(at))
			wait.Go(func() {
				err := send(base, q)
				took := time.Since(at)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed++
				} else {
					ms = append(ms, took.Seconds()*1000)
				}
			})
		}
		time.Sleep(time.Until(begin.Add(to)))
		close(stop)
		crashed := resident(pid) == 0
		ends <- func() {
			wait.Wait()
			if i < 0 || crashed {
				return
			}
			row.round, row.Report["s"], row.Report["errors"] = r.round*b.windows+i, each.Seconds(), failed
			slices.Sort(ms)
			for c, part := range map[string]int{"p50_ms": 500, "p99_ms": 990, "p999_ms": 999, "longest_ms": 1000} {
				if n := len(ms); n > 0 {
					row.Report[c] = ms[min(n*part/1000, n-1)]
				}
			}
			mean, peak := memory(row.timeline)
			first = cmp.Or(first, mean)
			row.Report["mean_mib"], row.Report["peak_mib"], row.Report["rise_mib"] = mean, peak, mean-first
			row.Report["device_mib"], row.Report["device_peak_mib"] = memory(device)
			if row.timeline = peaks(row.timeline, max(1, 100/b.windows)); r.round > 0 {
				row.timeline = nil
			}
			done(row)
		}
	}
	close(ends)
	<-over
}

// inUse returns the MiB of a device that a program uses, or 0 if it does not say.
func inUse(url string) float64 {
	answer, err := client.Get(url)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	var all map[string]float64
	_ = json.NewDecoder(answer.Body).Decode(&all)
	return all["in_use"] / (1 << 20)
}

// spent returns the processor time of a process in seconds, and the cycles in its log.
func spent(pid int, log string) frame.Report {
	text, _ := os.ReadFile(log)
	cycles, forced := bytes.Count(text, []byte(" ms clock, ")), bytes.Count(text, []byte("(forced)"))
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	ticks := 0.0 // of 10 ms
	for i, f := range strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) {
		if n, err := strconv.ParseFloat(f, 64); err == nil && (i == 11 || i == 12) {
			ticks += n
		}
	}
	return frame.Report{"cpu_s": ticks / 100, "cycles": float64(cycles), "forced": float64(forced)}
}
