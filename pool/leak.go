package pool

import (
	"fmt"
	"strings"

	"github.com/eagergc/eagergc/pressure"
)

// A LiveError tells [Config].Warn that a pool was closed while blocks were handed
// out. They stay usable, and go back to the upstream when they are freed.
type LiveError struct {
	Space  pressure.Space
	Bytes  int64    // live when the pool was closed
	Blocks int64    // and their number
	By     []Holder // the ten largest, if the pool samples sites
}

func (e *LiveError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pool: %v pool closed with %v live in %d blocks", e.Space, pressure.Bytes(e.Bytes), e.Blocks)
	for _, h := range e.By {
		fmt.Fprintf(&b, "; %v in %d blocks from %s", pressure.Bytes(h.Bytes), h.Blocks, h.Site)
	}
	return b.String()
}

// warnOfLive tells of blocks that are handed out.
func (p *Pool) warnOfLive() {
	if s := p.Stats(); s.Live > 0 {
		p.warn(&LiveError{Space: p.cfg.Space, Bytes: s.Live, Blocks: s.Allocs - s.Frees, By: p.Holders(10)})
	}
}
