package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eagergc/eagergc/cmd/clients/frame"
)

type reading struct {
	at       time.Duration
	resident float64 // MiB
}

var errNoWay = errors.New("no such way")

func build(program, folder, tags string) error {
	cmd := exec.Command("go", "build", "-tags", tags, "-o", program, ".")
	cmd.Dir = folder
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// measure runs a client once and watches its resident memory from the moment when its
// work begins. It returns errNoWay if the client has no such way.
func measure(program, way string, j job, cores []int) (r run, err error) {
	cmd := exec.Command(program, append([]string{"-way", way}, strings.Fields(j.args)...)...)
	cmd.Env = append(os.Environ(), "EAGERGC_CLIENT_CASE="+j.kind)
	if j.env != "" {
		cmd.Env = append(cmd.Env, j.env)
	}
	if !strings.HasSuffix(way, "auto") {
		cmd.Env = append(cmd.Env, "EAGERGC=off")
	}
	var message strings.Builder
	cmd.Stderr = &message
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := startOn(cores, cmd); err != nil {
		return r, err
	}
	lines := bufio.NewScanner(pipe)
	r = run{Client: j.name(), Load: j.load, Way: way}
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
		return r, errors.Join(waited, errors.New(message.String()))
	}
	for _, s := range r.timeline {
		r.Mean += s.resident / float64(len(r.timeline))
		r.Peak = max(r.Peak, s.resident)
	}
	return r, err
}

// startOn starts a process that has these cores; nil is all.
func startOn(cores []int, cmd *exec.Cmd) error {
	if cores == nil {
		return cmd.Start()
	}
	runtime.LockOSThread() // a process has the cores of the thread that starts it
	defer runtime.UnlockOSThread()
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	for _, c := range cores {
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("cores %v: %w", cores, err)
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &before))
}

// watch reads the resident memory of a process each 5 ms.
func watch(pid int, stop chan struct{}) (seen []reading) {
	begin, page := time.Now(), float64(os.Getpagesize())
	file := fmt.Sprintf("/proc/%d/statm", pid)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-stop:
			tick.Stop()
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
