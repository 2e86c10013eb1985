package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/cmd/clients/frame"
)

// A result is one run of a client.
type result struct {
	frame.Report
	Round      int
	mean, peak float64   // resident MiB while it worked
	timeline   []reading // a look each 5 ms
}

type reading struct {
	at       time.Duration
	resident float64 // MiB
}

func build(program, folder, tags string) error {
	cmd := exec.Command("go", "build", "-tags", tags, "-o", program, ".")
	cmd.Dir = folder
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// measure runs a client once and watches its resident memory from the moment when its
// work begins. It returns nil if the client has no such way.
func measure(program, way string, args []string) (*result, error) {
	cmd := exec.Command(program, append([]string{"-way", way}, args...)...)
	cmd.Env = os.Environ()
	if way != "auto" {
		cmd.Env = append(cmd.Env, "EAGERGC=off")
	}
	var message strings.Builder
	cmd.Stderr = &message
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(pipe)
	var r result
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
			return nil, nil
		}
		return nil, errors.Join(waited, errors.New(message.String()))
	}
	for _, s := range r.timeline {
		r.mean += s.resident / float64(len(r.timeline))
		r.peak = max(r.peak, s.resident)
	}
	return &r, err
}

// watch reads the resident memory of a process each 5 ms.
func watch(pid int, stop chan struct{}) (seen []reading) {
	begin, page := time.Now(), float64(os.Getpagesize())
	file := fmt.Sprintf("/proc/%d/statm", pid)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-stop:
			return seen
		case <-tick.C:
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if f := strings.Fields(string(text)); len(f) > 1 {
			pages, _ := strconv.ParseFloat(f[1], 64)
			seen = append(seen, reading{time.Since(begin), pages * page / (1 << 20)})
		}
	}
}
