package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A progress shows how far a long job is: on a terminal only, and only once
// it has taken a second. Its methods are safe for concurrent use.
type progress struct {
	mu    sync.Mutex
	bar   *progressbar.ProgressBar // nil if there is no terminal
	start time.Time
}

func newProgress(stderr io.Writer, what string, total int) *progress {
	p := &progress{start: time.Now()}
	if f, ok := stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(stderr),
			progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(),
			progressbar.OptionSetElapsedTime(false), // it counts from the first time that the bar is drawn
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish())
	}
	return p
}

// set says that n of the total are done.
func (p *progress) set(n int) {
	if p.bar == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.start) > time.Second && int64(n) > p.bar.State().CurrentNum {
		_ = p.bar.Set(n) // a bar that cannot be drawn is no failure of the job
	}
}

// done takes the bar away.
func (p *progress) done() {
	if p.bar != nil && p.bar.State().CurrentNum > 0 {
		_ = p.bar.Clear()
	}
}
