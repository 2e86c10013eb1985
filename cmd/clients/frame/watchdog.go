package frame

import (
	"time"
	_ "unsafe" // go:linkname

	"github.com/elastic/gosigar"
	"github.com/raulk/go-watchdog"

	"github.com/eagergc/eagergc/pressure"
)

// watched is what go-watchdog asks for the memory in use; as it ships, the machine's.
//
//go:linkname watched github.com/raulk/go-watchdog.sysmemFn
var watched func(*gosigar.Mem) error

// lotus is go-watchdog with Lotus's marks, told of the process's resident memory.
func lotus(limit int64) func() {
	return func() {
		watchdog.Logger = silent{}
		watched = func(m *gosigar.Mem) error {
			r, err := pressure.ReadResident()
			m.ActualUsed = uint64(r.Anonymous + r.Mapped)
			return err
		}
		marks := watchdog.NewWatermarkPolicy(0.50, 0.60, 0.70, 0.85, 0.90, 0.925, 0.95)
		if err, _ := watchdog.SystemDriven(uint64(limit), 100*time.Millisecond, marks); err != nil {
			panic(err)
		}
	}
}

type silent struct{}

func (silent) Debugf(string, ...any) {}
func (silent) Infof(string, ...any)  {}
func (silent) Warnf(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
