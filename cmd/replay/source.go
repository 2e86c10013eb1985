package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/torchsnap"
)

// loadWorkloads reads and compiles files, or the built-in traces if there are
// none, side by side and in order.
func loadWorkloads(files []string) ([]*sim.Workload, error) {
	loads := make([]*sim.Workload, len(files))
	var g errgroup.Group
	for i, f := range files {
		g.Go(func() error {
			w, err := loadWorkload(f)
			loads[i] = w
			return err
		})
	}
	return loads, g.Wait()
}

// loadWorkload reads a file and compiles the space in which it allocates most.
func loadWorkload(path string) (*sim.Workload, error) {
	t, err := loadTrace(path)
	if err != nil {
		return nil, err
	}
	w, err := sim.Compile(t, sim.SpaceOf(t))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

func loadTrace(path string) (*trace.Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := torchsnap.Read(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t.Name, _, _ = strings.Cut(filepath.Base(path), ".")
	return t, nil
}
