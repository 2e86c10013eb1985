// Package formats opens trace files of every format that eagergc knows. They may be packed with gzip,
// zstd or xz. The content of a file decides, not its name.
//
// Files of unknown origin have bounds. Their readers have a [recording.Budget]. A packed file may
// unpack to 64 MiB and 100 times its size. A decoder of zstd or xz may use a window of 8 MiB.
//
// To add a format, add one line to the table in this package.
package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/kineto"
	"github.com/eagergc/eagergc/trace/formats/logs"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"github.com/eagergc/eagergc/trace/formats/torchsnap"
	_ "github.com/eagergc/eagergc/trace/formats/zstd" // native files may be packed with it
)

// A Format is one kind of trace file.
type Format struct {
	Name   string                                // as in --from
	About  string                                // one line for help texts
	Detect func(head []byte) bool                // whether an unpacked file that begins with head may be of this format
	Read   func(io.Reader) (*trace.Trace, error) // reads a whole unpacked file
}

// table holds all formats. The first one whose Detect agrees reads the file, so
// the strictest come first.
var table = []Format{
	{"eagergc", "native trace, an Arrow IPC stream (replay import, trace.Recorder)", isArrow, trace.Read},
	{"text", "the text form of a trace, for tests and by hand", isText, recording.ReadText},
	{"rmm", "RMM event log, CSV (rmm.mr.LoggingResourceAdaptor)", logs.DetectRMM, logs.ReadRMM},
	{"cupy", "CuPy memory hooks, JSON lines (DebugPrintHook, or eagergc_hook.py)", logs.DetectCuPy, logs.ReadCuPy},
	{"heaptrack", "heaptrack of a C or C++ program (NAME.zst, NAME.gz)", logs.DetectHeaptrack, logs.ReadHeaptrack},
	{"torch", "PyTorch memory snapshot (torch.cuda.memory._dump_snapshot)", torchsnap.Detect, torchsnap.Read},
	{"kineto", "PyTorch profiler, Chrome trace JSON (export_chrome_trace)", kineto.Detect, kineto.Read},
}

// isArrow looks for the four bytes before each message of an Arrow IPC stream.
func isArrow(head []byte) bool { return bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}) }

func isText(head []byte) bool { return bytes.HasPrefix(head, []byte(recording.TextHeader)) }

// All returns the known formats.
func All() []Format { return slices.Clone(table) }

var errUnknown = errors.New("unknown format")

// headSize is how much of a file Detect sees.
const headSize = 4096

// An Opener opens trace files. The zero value finds the format by content and
// holds the file to the bounds of this package. It is safe for concurrent use.
type Opener struct {
	From   string // name of the format; "" = find it
	Memory int64  // bytes that a file may make its reader hold, garbage aside; 0 = 16 MiB and 30 times the file
}

// Open reads the trace file path. A trace without a name gets the name of the
// file. Errors begin with the path, and an error in the content gives its place. If
// a native trace was cut off, Open returns the part that can be read together with
// an error that is [trace.ErrTruncated]. With any other error the trace is nil.
func (o Opener) Open(path string) (*trace.Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("formats: %w", err)
	}
	defer f.Close()
	t, err := o.Read(f)
	if t != nil && t.Name == "" {
		t.Name = recording.Stem(path)
	}
	if err != nil {
		err = fmt.Errorf("formats: %s: %w", path, err)
	}
	return t, err
}

// Read reads one trace from r, to its end. Results are those of [Opener.Open],
// but errors have no path.
func (o Opener) Read(r io.Reader) (*trace.Trace, error) {
	plain, err := newUnpacker(r, &recording.Budget{Memory: o.Memory})
	if err != nil {
		return nil, err
	}
	defer plain.close()
	head, err := plain.peek(headSize)
	if err != nil {
		return nil, err
	}
	format, err := o.find(head)
	if err != nil {
		return nil, err
	}
	return format.Read(plain)
}

func (o Opener) find(head []byte) (Format, error) {
	var known []string
	for _, f := range table {
		if o.From == f.Name || o.From == "" && f.Detect(head) {
			return f, nil
		}
		known = append(known, f.Name)
	}
	names := strings.Join(known, ", ")
	switch {
	case o.From != "":
		return Format{}, fmt.Errorf("%w %q (known: %s)", errUnknown, o.From, names)
	case len(head) == 0:
		return Format{}, errors.New("empty file")
	}
	return Format{}, fmt.Errorf("%w: it begins with %.16q (known: %s)", errUnknown, head, names)
}
