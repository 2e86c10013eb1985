//go:build peers

// The peers that are not in go.mod, so that nobody needs them who does not compare:
//
//	go get github.com/raulk/go-watchdog@v1.3.0 github.com/cch123/gogctuner@6fadbbd25d74 \
//		github.com/newcloudtechnologies/memlimiter@v0.0.7
//	go run . -tags peers -ways plain,watchdog:512,gogctuner:512,memlimiter:512 thumb
package frame

import (
	"encoding/json"
	"fmt"
	"time"
	_ "unsafe" // go:linkname

	"github.com/cch123/gogctuner"
	"github.com/elastic/gosigar"
	"github.com/go-logr/logr"
	"github.com/newcloudtechnologies/memlimiter"
	"github.com/raulk/go-watchdog"

	"github.com/eagergc/eagergc/pressure"
)

func init() {
	peers["watchdog"] = lotus
	peers["gogctuner"] = tuner
	peers["memlimiter"] = limiter
}

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

// tuner is gogctuner, which takes its limit as a share of the machine's memory.
func tuner(limit int64) func() {
	return func() {
		machine, err := pressure.HostMemory()
		if err != nil {
			panic(err)
		}
		gogctuner.NewTuner(false, 100*float64(limit)/float64(machine.Total))
	}
}

// limiter is memlimiter with the values of its README.
func limiter(limit int64) func() {
	return func() {
		var cfg memlimiter.Config
		text := fmt.Sprintf(`{"controller_nextgc": {"rss_limit": "%dM", "danger_zone_gogc": 50, "danger_zone_throttling": 90,
			"period": "100ms", "component_proportional": {"coefficient": 1, "window_size": 20}}}`, limit>>20)
		if err := json.Unmarshal([]byte(text), &cfg); err != nil {
			panic(err)
		}
		if _, err := memlimiter.NewServiceFromConfig(logr.Discard(), &cfg); err != nil {
			panic(err)
		}
	}
}
