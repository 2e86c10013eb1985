//go:build peers

// The peers that are not in go.mod, so that nobody needs them who does not compare:
//
//	go get github.com/cch123/gogctuner@6fadbbd25d74 github.com/newcloudtechnologies/memlimiter@v0.0.7
//	go run . -tags peers -ways plain,gogctuner:512,memlimiter:512 matrix
package frame

import (
	"encoding/json"
	"fmt"

	"github.com/cch123/gogctuner"
	"github.com/go-logr/logr"
	"github.com/newcloudtechnologies/memlimiter"

	"github.com/eagergc/eagergc/pressure"
)

func init() {
	peers["gogctuner"] = tuner
	peers["memlimiter"] = limiter
}

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
