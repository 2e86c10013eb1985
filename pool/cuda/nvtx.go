package cuda

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// nvtx tells Nsight of waits, as ranges, and of cycles and refusals, as marks at their
// end that say how long they took. It is a [trace.Sink] of [Default]'s pools and
// collector. A tool that listens says so in the environment. Without one, or without the
// library libnvToolsExt, which newer installations of CUDA lack, nobody is told and
// nothing is paid.
type nvtx struct{ begun time.Time }

func newNVTX() trace.Sink {
	if os.Getenv("NVTX_INJECTION64_PATH") == "" || !nvtxLoad() {
		return nil
	}
	return &nvtx{time.Now()}
}

// Now is that of [trace.Sink].
func (n *nvtx) Now() time.Duration { return time.Since(n.begun) }

// Label is that of [trace.Sink]; no label is shown.
func (n *nvtx) Label(string) uint32 { return 0 }

// Record is that of [trace.Sink].
func (n *nvtx) Record(e trace.Event) {
	switch took := e.Duration.Round(time.Microsecond); e.Kind {
	case trace.Cycle:
		nvtxMark(fmt.Sprintf("eagergc cycle (%v): %v, freed %v", policy.Trigger(e.Aux), took, pressure.Bytes(e.Bytes)))
	case trace.Refuse:
		nvtxMark(fmt.Sprintf("eagergc refusal of %v: %v, %v", pressure.Bytes(e.Bytes), pool.Step(e.Aux), took))
	}
}

// ranged shows f as a range.
func ranged(name string, f func() error) error {
	id := nvtxStart("eagergc wait: " + strings.ToValidUTF8(name, "?"))
	defer nvtxEnd(id)
	return f()
}
