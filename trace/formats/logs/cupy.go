package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// hookVersion is the version of the lines of eagergc_hook.py that are read.
const hookVersion = 1

// DetectCuPy reports whether head, the first bytes of a file, is a line of a hook.
func DetectCuPy(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
	return bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line, []byte(`"hook"`))
}

// A cupyRow is one line. Some fields are pointers: nil means that they are missing.
type cupyRow struct {
	Hook    string  `json:"hook"`
	Device  int     `json:"device_id"`
	Size    int64   `json:"size"`
	MemSize *int64  `json:"mem_size"`
	Ptr     *uint64 `json:"mem_ptr"`
	Time    *int64  `json:"t_ns"`
	Wait    int64   `json:"dur_ns"`
	Stream  uint64  `json:"stream"`
	Name    string  `json:"name"`
	Version int     `json:"version"`
	CuPy    string  `json:"cupy"`
}

// ReadCuPy reads what hooks of CuPy's memory pool write, one JSON object per line.
// The hook is CuPy's own DebugPrintHook or eagergc_hook.py, which lies beside this
// package and adds times, streams and waits.
//
//	malloc  Alloc of mem_size, the bytes that the pool hands out
//	free    Drop: CuPy counts references, so this is when the object became
//	        unreachable
//	alloc   Reserve: the pool took mem_size from the device
//	sync    Sync, only in files of eagergc_hook.py
//
// CuPy has no hook for memory that the pool gives back to the device.
// DebugPrintHook writes no times: then the lines are one microsecond apart,
// Trace.Start is zero and Trace.Meta["clock"] says so. An object that is freed
// under the hook, but was allocated before the hook was set, is allocated at
// time 0.
func ReadCuPy(r io.Reader) (*trace.Trace, error) {
	t := &trace.Trace{Meta: map[string]string{"source": "CuPy memory hooks"}}
	l := cupyLog{t: t, book: newBook(r, time.Second)}
	l.labels = recording.NewLabeler(t, l.book.budget)
	err := l.book.lines(r, func(line []byte) error {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		var ro cupyRow
		if err := json.Unmarshal(line, &ro); err != nil {
			return err
		}
		return l.row(&ro)
	})
	epoch := time.Unix(0, 0).UTC()
	t.Meta["clock"] = "wall clock, ns"
	if !l.timed {
		epoch, t.Meta["clock"] = time.Time{}, "none: entries are one microsecond apart"
	}
	if err == nil {
		err = l.book.finish(t, epoch)
	}
	if err != nil {
		return nil, fmt.Errorf("cupy: %w", err)
	}
	return t, nil
}

type cupyLog struct {
	t      *trace.Trace
	book   book
	labels *recording.Labeler
	rows   int64
	timed  bool
}

func (l *cupyLog) row(ro *cupyRow) error {
	e, err := l.event(ro)
	if err != nil {
		return err
	}
	switch ro.Hook {
	case "eagergc":
		if ro.Version != hookVersion {
			return fmt.Errorf("version %d of the hook is not known (want %d)", ro.Version, hookVersion)
		}
		l.t.Meta["cupy"] = ro.CuPy
		return nil
	case "sync":
		if ro.Time == nil {
			return errors.New("sync without t_ns")
		}
		e.Duration, e.Aux = time.Duration(ro.Wait), l.labels.Label(ro.Name)
		return l.book.wait(e)
	case "malloc", "free", "alloc":
		if ro.Ptr == nil || ro.MemSize == nil {
			return fmt.Errorf("%s without mem_ptr or mem_size", ro.Hook)
		}
		e.Bytes = *ro.MemSize
	default:
		return fmt.Errorf("unknown hook %q", ro.Hook)
	}
	switch {
	case ro.Hook == "alloc":
		e.Kind = trace.Reserve
		return l.book.add(e)
	case *ro.Ptr == 0: // of no bytes
		return nil
	case ro.Hook == "malloc":
		return l.book.alloc(e, *ro.Ptr)
	}
	return l.book.free(e, *ro.Ptr)
}

// event returns an event with the fields that all rows have.
func (l *cupyLog) event(ro *cupyRow) (trace.Event, error) {
	if ro.Device < 0 || ro.Device >= pressure.MaxDevices {
		return trace.Event{}, fmt.Errorf("device_id %d", ro.Device)
	}
	e := trace.Event{Time: l.rows * int64(time.Microsecond), Space: pressure.Device(ro.Device)}
	if l.rows == 0 {
		l.timed = ro.Time != nil
	}
	l.rows++
	if l.timed != (ro.Time != nil) {
		return e, errors.New("some lines have t_ns and some have not")
	}
	if l.timed {
		e.Time = *ro.Time
		if e.Time < 0 || e.Time > maxTime {
			return e, fmt.Errorf("t_ns %d is out of range", e.Time)
		}
	}
	e.Stream = l.book.stream(ro.Stream)
	return e, nil
}

const maxTime = int64(1) << 62 // ns since 1970: the year 2116
