package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A progress shows how far a long job is: on a terminal only, and only once
// it has taken a second.
type progress struct {
	bar   *progressbar.ProgressBar // nil if there is no terminal
	start time.Time
	n     int // done so far
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

// add says that one more of the total is done.
func (p *progress) add() {
	if p.bar == nil {
		return
	}
	if p.n++; time.Since(p.start) > time.Second {
		_ = p.bar.Set(p.n) // a bar that cannot be drawn is no failure of the job
	}
}

// done takes the bar away.
func (p *progress) done() {
	if p.bar != nil && p.bar.State().CurrentNum > 0 {
		_ = p.bar.Clear()
	}
}
