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
	at       time.Duration
	resident float64 // MiB
}

var (
	errNoWay     = errors.New("no such way")
	errNoReading = errors.New("the client had ended before its memory was read: it needs more requests")
)

// build builds a client, in the module that it is of.
func build(program, folder string) error {
	cmd := exec.Command("go", "build", "-o", program, "./"+folder)
	module, _, _ := strings.Cut(folder, "/")
	if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
		cmd = exec.Command("../../.ci/with", "cmd/clients/"+module, "go", "build", "-o", program, "./"+strings.TrimPrefix(folder, module)[min(1, len(folder)-len(module)):])
	}
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// measure runs a client once and watches its resident memory from the moment when its
// work begins. It returns errNoWay if the client has no such way, and errNoReading if it
// was gone too soon.
func measure(program, way string, j job) (r run, err error) {
	cmd := exec.Command(program, j.args(way)...)
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
	r = run{Client: filepath.Base(j.program), Way: way}
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
	sum := 0.0
	for _, s := range r.timeline {
		sum += s.resident
		r.Peak = max(r.Peak, s.resident)
	}
	r.Mean = sum / float64(len(r.timeline))
	return r, nil
}

// watch reads the resident memory of a process at once and then each 5 ms, until it is
// told to stop. A process that has ended has no memory: that is no reading.
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

// resident returns the MiB that a statm file tells of; 0 if the process has ended.
func resident(statm string) float64 {
	text, err := os.ReadFile(statm)
	f := strings.Fields(string(text))
	if err != nil || len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(f[1], 64)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}
