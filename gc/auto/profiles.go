package auto

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
)

const (
	profilesVariable = "EAGERGC_PROFILES"
	mostProfiles     = 10
)

// profiles writes heap profiles into a folder; none where that is empty.
type profiles struct {
	folder  string
	written int
}

func (p *profiles) write() {
	if p.folder == "" || p.written >= mostProfiles {
		return
	}
	p.written++
	name := filepath.Join(p.folder, fmt.Sprintf("eagergc-%d-%d.heap", os.Getpid(), p.written))
	if err := writeHeap(name); err != nil {
		slog.Warn("eagergc: heap profile", slog.Any("error", err))
	}
}

func writeHeap(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	err = pprof.Lookup("heap").WriteTo(file, 0)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
