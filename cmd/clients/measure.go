package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/cmd/clients/frame"
)

type reading struct {
	at  time.Duration
	mib float64
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
		go func() {
			done <- watch(time.Now(), stop, 5*time.Millisecond, func() float64 { return resident(cmd.Process.Pid) })
		}()
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
	r.Report["mean_mib"], r.Report["peak_mib"] = memory(r.timeline)
	return r, nil
}

// memory returns the mean and the peak of readings.
func memory(timeline []reading) (mean, peak float64) {
	for _, s := range timeline {
		mean += s.mib
		peak = max(peak, s.mib)
	}
	return mean / float64(max(1, len(timeline))), peak
}

// watch reads an amount of memory at once and then regularly, until stop is closed. The times of
// readings count from begin. It leaves out readings of 0.
func watch(begin time.Time, stop chan struct{}, every time.Duration, read func() float64) (seen []reading) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if mib := read(); mib > 0 {
			seen = append(seen, reading{time.Since(begin), mib})
		}
		select {
		case <-stop:
			return seen
		case <-tick.C:
		}
	}
}

// resident returns the resident MiB of a process, or 0 if it has ended.
func resident(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	f := strings.Fields(string(text))
	if err != nil || len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(f[1], 64)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}
