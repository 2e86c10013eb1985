package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/eagergc/eagergc/pressure"
)

// A progress shows how far a long job is, once it has taken a second: in one line on a
// terminal, elsewhere in a line now and then.
type progress struct {
	w           io.Writer
	what        string
	total, n    int // of the parts
	terminal    bool
	start, said time.Time
}

func newProgress(stderr io.Writer, what string, total int) *progress {
	p := &progress{w: stderr, what: what, total: total, start: time.Now()}
	if f, ok := stderr.(*os.File); ok {
		p.terminal = term.IsTerminal(int(f.Fd()))
	}
	p.said = p.start
	return p
}

func (p *progress) add() {
	p.n++
	every := 10 * time.Second
	if p.terminal {
		every = 100 * time.Millisecond
	}
	now := time.Now()
	if now.Sub(p.said) < every || now.Sub(p.start) < time.Second {
		return
	}
	p.said = now
	text := fmt.Sprintf("replay: %s of %s %s, %v", pressure.Count(p.n), pressure.Count(p.total), p.what, now.Sub(p.start).Round(time.Second))
	if p.terminal {
		fmt.Fprint(p.w, "\r"+text+"\x1b[K")
	} else {
		fmt.Fprintln(p.w, text)
	}
}

// done takes the line away.
func (p *progress) done() {
	if p.terminal && p.said != p.start {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// saying says what goes on, and every ten seconds that it still does, until stop.
func saying(stderr io.Writer, what string) (stop func()) {
	fmt.Fprintf(stderr, "replay: %s ...\n", what)
	start, end, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(stderr, "replay: %s: %v so far\n", what, time.Since(start).Round(time.Second))
			case <-end:
				return
			}
		}
	}()
	return func() { close(end); <-ended }
}
