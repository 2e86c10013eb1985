package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/eagergc/eagergc/cmd/replay/addressonly"
	"github.com/eagergc/eagergc/cmd/replay/live"
	"github.com/eagergc/eagergc/pool/cuda"
)

var poolNames = []string{"host", "cuda", "cuda-async"}

// A memory holds the flags of the real memory of a command.
type memory struct {
	live.Memory
	wait   func(time.Duration) error // keeps the GPU busy for that long, and waits; nil: no GPU
	launch func(time.Duration) error // the same without waiting
	name   string
	touch  string
	cached bool
	sleep  bool
	device int
}

func (m *memory) register(f *pflag.FlagSet) {
	f.StringVar(&m.name, "pool", "host", "`memory` to use: host, or in a build with the tag cuda: cuda, cuda-async")
	f.BoolVar(&m.sleep, "sleep", false, "sleep during waits instead of keeping the GPU busy: for several runs on one GPU")
	f.IntVar(&m.device, "device", 0, "`number` of the GPU")
	f.StringVar(&m.touch, "touch", "4KiB", "`bytes` of every new object that are written, or all")
	f.BoolVar(&m.cached, "cached", false, "let the pool cache memory; fragments then count against the limit")
}

func (m *memory) check() error {
	if !slices.Contains(poolNames, m.name) {
		return fmt.Errorf("unknown pool %q (want %s)", m.name, strings.Join(poolNames, ", "))
	}
	m.Direct = m.name == "cuda-async" || m.name == "host" && !m.cached
	if m.touch == "all" {
		m.Touch = -1
		return nil
	}
	if err := (*sizeFlag)(&m.Touch).Set(m.touch); err != nil {
		return fmt.Errorf("--touch: %w", err)
	}
	return nil
}

// kind returns the pool without memory that refuses the same allocations.
func (m *memory) kind() addressonly.Kind {
	switch {
	case m.Direct:
		return addressonly.Exact
	case m.name == "host":
		return addressonly.Segments
	}
	return addressonly.Virtual
}

// mapped returns the number of chunks that the driver has mapped.
func mapped() int64 {
	for _, c := range cuda.Calls() {
		if c.Name == "cuMemMap" {
			return c.Calls
		}
	}
	return 0
}

// open opens the GPU, if the flags name one. Its memory is for our own caching pool with movable
// chunks (cuda), or in blocks of the driver's stream-ordered pool (cuda-async).
func (m *memory) open() (func() error, error) {
	if strings.HasPrefix(m.name, "host") {
		return func() error { return nil }, nil
	}
	d, err := cuda.Open(m.device)
	if err != nil {
		return nil, fmt.Errorf("--pool %s: %w", m.name, err)
	}
	w, err := cuda.NewWork(d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	closing := func() error { return errors.Join(w.Close(), d.Close()) }
	m.Space, m.Waits = d.Space(), true
	m.launch = func(busy time.Duration) error { return w.Spin(d.Default(), busy) }
	m.wait = func(busy time.Duration) error {
		if err := m.launch(busy); err != nil {
			return err
		}
		return d.Default().Synchronize()
	}
	if m.sleep {
		m.launch, m.wait = nil, nil
	}
	if m.name == "cuda" {
		m.Upstream, m.Mapped = d.Memory(), mapped
		return closing, nil
	}
	async, err := d.NewDriverPool(-1)
	if err != nil {
		return nil, errors.Join(err, closing())
	}
	m.Upstream = async.Upstream()
	return func() error { return errors.Join(async.Close(), closing()) }, nil
}
