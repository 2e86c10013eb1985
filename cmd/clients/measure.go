package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/cmd/clients/frame"
)

type reading struct {
	at       time.Duration
	resident float64 // MiB
}

var (
	errNoWay     = errors.New("no such way")
	errNoReading = errors.New("the client had ended before its memory was read: it needs more requests")
)

// build builds a client in its module.
func build(program, folder string) error {
	cmd := exec.Command("go", "build", "-o", program, "./"+folder)
	module, _, _ := strings.Cut(folder, "/")
	if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
		cmd = exec.Command("../../.ci/with", "cmd/clients/"+module, "go", "build", "-o", program, "./"+strings.TrimPrefix(folder, module)[min(1, len(folder)-len(module)):])
	}
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// measure runs a client once, and reads its resident memory from the beginning of its work. It
// returns errNoWay if the client does not support the way, and errNoReading if the client ended
// before the first reading.
func measure(program, way string, j job) (r run, err error) {
	cmd := exec.Command(program, "-way", way, "-requests", j.requests, "-workers", j.workers)
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(program))
	if !strings.HasSuffix(way, "auto") {
		cmd.Env = append(cmd.Env, "EAGERGC=off")
	}
	var message strings.Builder
	cmd.Stderr = &message
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	lines := bufio.NewScanner(pipe)
	r = run{client: j.name(), way: way}
	if lines.Scan() && lines.Text() == frame.Begin {
		stop := make(chan struct{})
		done := make(chan []reading)
		go func() { done <- watch(cmd.Process.Pid, stop) }()
		lines.Scan()
		close(stop)
		r.timeline = <-done
		err = json.Unmarshal(lines.Bytes(), &r.Report)
	}
	if waited := cmd.Wait(); waited != nil {
		if strings.Contains(message.String(), frame.ErrNoWay.Error()) {
			return r, errNoWay
		}
		return r, errors.Join(waited, errors.New(message.String()[:min(message.Len(), 400)]))
	}
	if err == nil && len(r.timeline) == 0 {
		err = errNoReading
	}
	if err != nil {
		return r, err
	}
	r.memory(0, math.MaxInt64)
	return r, nil
}

// memory adds the mean and the peak of the readings between two times to the report.
func (r *run) memory(from, to time.Duration) {
	sum, n := 0.0, 0.0
	for _, s := range r.timeline {
		if from <= s.at && s.at < to {
			sum, n = sum+s.resident, n+1
			r.Report["peak_mib"] = max(r.Report["peak_mib"], s.resident)
		}
	}
	r.Report["mean_mib"] = sum / max(n, 1)
}

// watch reads the resident memory of a process at once and then every 5 ms, until stop is closed.
// It leaves out readings of a process that has ended.
func watch(pid int, stop chan struct{}) (seen []reading) {
	begin := time.Now()
	file := fmt.Sprintf("/proc/%d/statm", pid)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if mib := resident(file); mib > 0 {
			seen = append(seen, reading{time.Since(begin), mib})
		}
		select {
		case <-stop:
			return seen
		case <-tick.C:
		}
	}
}

// resident returns the resident MiB of a statm file, or 0 if the process has ended.
func resident(statm string) float64 {
	text, err := os.ReadFile(statm)
	f := strings.Fields(string(text))
	if err != nil || len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(f[1], 64)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}
