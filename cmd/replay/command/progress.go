package command

import (
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/eagergc/eagergc/cmd/replay/chart"
)

// A progress shows the progress of a job that takes more than a second. On a terminal it updates one
// line; elsewhere it prints a line every ten seconds. Its methods are safe for concurrent use.
type progress struct {
	w        io.Writer
	what     string
	terminal bool
	start    time.Time
	share    atomic.Uint64 // float64 bits of the share that is done; 0: unknown
	end      chan struct{}
	ended    chan struct{}
}

// newProgress starts to show a job of cmd, on its standard error. Call stop at the end of the job.
func newProgress(cmd *cobra.Command, what string) *progress {
	p := &progress{w: cmd.ErrOrStderr(), what: what, start: time.Now(), end: make(chan struct{}), ended: make(chan struct{})}
	if f, ok := p.w.(*os.File); ok {
		p.terminal = term.IsTerminal(int(f.Fd()))
	}
	go p.show()
	return p
}

// done sets the share of the job that is done, from 0 to 1.
func (p *progress) done(share float64) { p.share.Store(math.Float64bits(share)) }

// part returns a function that sets the share of part i of n equal parts that is done.
func (p *progress) part(i, n int) func(share float64) {
	return func(share float64) { p.done((float64(i) + share) / float64(n)) }
}

func (p *progress) show() {
	defer close(p.ended)
	every := 10 * time.Second
	if p.terminal {
		every = time.Second / 2
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for said := false; ; {
		select {
		case <-tick.C:
		case <-p.end:
			if said && p.terminal {
				fmt.Fprint(p.w, "\r\x1b[K") // takes the line away
			}
			return
		}
		took := time.Since(p.start)
		if took < time.Second {
			continue
		}
		said = true
		text := progressText(p.what, math.Float64frombits(p.share.Load()), took)
		if p.terminal {
			fmt.Fprint(p.w, "\r"+text+"\x1b[K")
		} else {
			fmt.Fprintln(p.w, text)
		}
	}
}

// progressText describes a job that has run for some time. If its share is known, the text includes
// the time left at the same speed.
func progressText(what string, share float64, took time.Duration) string {
	text := fmt.Sprintf("replay: %s: %v so far", what, took.Round(time.Second))
	if share <= 0 {
		return text
	}
	share = min(share, 1)
	left := time.Duration(float64(took) * (1 - share) / share)
	return fmt.Sprintf("%s, %s done, about %v left", text, chart.Percent(share), left.Round(time.Second))
}

// stop ends the display.
func (p *progress) stop() {
	close(p.end)
	<-p.ended
}
