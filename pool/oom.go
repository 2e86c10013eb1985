package pool

import (
	"fmt"
	"strings"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// An OutOfMemoryError is the error of an allocation that did not fit after all steps of the ladder.
// errors.Is finds [ErrOutOfMemory] and the upstream's error in it.
type OutOfMemoryError struct {
	Bytes   int64           // size of the request, rounded up to 512
	Sample  pressure.Sample // the pool when the allocation failed
	Report  string          // see Pool.Report
	Holders []Holder        // the ten largest, if the pool samples sites
	Steps   []Climb         // what each step of the ladder did
	Err     error           // what refused the last try: the hard limit, or the upstream
}

func (p *Pool) outOfMemory(size int64, cause error, done []Climb) error {
	return &OutOfMemoryError{
		Bytes: size, Sample: p.Sample(), Report: p.report(), Holders: p.Holders(10), Steps: done, Err: cause,
	}
}

// helpPage says what to try when memory is out, in order.
const helpPage = "https://github.com/eagergc/eagergc/blob/main/pool/OUTOFMEMORY.md"

// Error returns one line. Detail returns more.
func (e *OutOfMemoryError) Error() string {
	text := fmt.Sprintf("pool: out of %v memory: %v wanted, %v live, %v reserved, limit %s", e.Sample.Space,
		pressure.Bytes(e.Bytes), pressure.Bytes(e.Sample.Live), pressure.Bytes(e.Sample.Reserved), orNone(e.Sample.Limit))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Detail returns the error, the steps, the pool's report, where to read what to try, and the
// largest holders, on several lines.
func (e *OutOfMemoryError) Detail() string {
	var b strings.Builder
	fmt.Fprintln(&b, e.Error())
	for _, c := range e.Steps {
		fmt.Fprintf(&b, "  %-11s %10v  freed %v, released %v", c.Step, c.Duration.Round(time.Microsecond), pressure.Bytes(c.Freed), pressure.Bytes(c.Released))
		if c.Err != nil {
			fmt.Fprintf(&b, ", failed: %v", c.Err)
		}
		fmt.Fprintln(&b)
	}
	b.WriteString(e.Report)
	fmt.Fprintf(&b, "What to try: %s\n", helpPage)
	for _, h := range e.Holders {
		fmt.Fprintf(&b, "  %v in %d blocks from %s\n", pressure.Bytes(h.Bytes), h.Blocks, h.Site)
		calls := strings.Split(h.Stack, "\n")
		for _, caller := range calls[1:min(len(calls), 3)] {
			fmt.Fprintf(&b, "    called from %s\n", pressure.SiteLine(caller))
		}
	}
	return b.String()
}

// Unwrap returns [ErrOutOfMemory] and the cause.
func (e *OutOfMemoryError) Unwrap() []error { return []error{ErrOutOfMemory, e.Err} }
