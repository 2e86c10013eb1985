package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

const rmmHeader = "Thread,Time,Action,Pointer,Size,Stream"

// DetectRMM reports whether head, the first bytes of a file, is that of RMM's log.
func DetectRMM(head []byte) bool { return bytes.HasPrefix(trimMark(head), []byte(rmmHeader)) }

// trimMark takes off a byte order mark, which spreadsheets add.
func trimMark(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\ufeff")) }

// ReadRMM reads the memory event log of RMM, the RAPIDS Memory Manager: its
// logging_resource_adaptor writes a CSV file with the columns
//
//	Thread,Time,Action,Pointer,Size,Stream
//
//	allocate          Alloc
//	free              Drop: an RMM buffer is freed when its last owner is destroyed
//	allocate failure  Refuse
//
// A log belongs to one device, which only the file's name has: it is read as device 0.
// Stream is a number or an address in hexadecimal.
//
// Time is a time of day (15:47:02.841961, in older versions 15:47:02:841961) or the
// seconds since 1970 with a fraction. If a time of day jumps back by more than half
// a day, the next day has begun. Several threads write to one log, so a time may
// be up to a second too early. Such an event gets the time of the event before it,
// and Trace.Meta counts these corrections (clock_corrections).
//
// Rows with a null pointer, such as an allocation of no bytes, are left out.
func ReadRMM(r io.Reader) (*trace.Trace, error) {
	l := rmmLog{book: newBook(r, time.Second)}
	first := true
	err := l.book.lines(r, func(line []byte) error {
		if first {
			first = false
			if string(trimMark(line)) != rmmHeader {
				return fmt.Errorf("no header %s", rmmHeader)
			}
			return nil
		}
		if len(line) == 0 {
			return nil
		}
		return l.row(string(line))
	})
	t := &trace.Trace{Meta: map[string]string{"source": "RMM event log"}, Labels: []string{""}}
	if err == nil {
		var epoch time.Time
		if l.clock == sinceEpoch {
			epoch = time.Unix(0, 0).UTC()
		}
		err = l.book.finish(t, epoch)
	}
	if err != nil {
		return nil, fmt.Errorf("rmm: %w", err)
	}
	t.Meta["clock"] = l.clock
	return t, nil
}

// The kinds of times in a log, as Trace.Meta names them.
const (
	timeOfDay  = "time of day, microseconds"
	sinceEpoch = "wall clock, microseconds"
)

type rmmLog struct {
	book  book
	clock string
	last  int64 // time of day of the last row, ns
	days  int64
}

func (l *rmmLog) row(line string) error {
	f := strings.Split(line, ",")
	if len(f) != 6 {
		return fmt.Errorf("want the 6 fields %s", rmmHeader)
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	now, err := l.time(f[1])
	if err != nil {
		return fmt.Errorf("column Time %q: %w", f[1], err)
	}
	size, err := strconv.ParseUint(f[4], 10, 62)
	if err != nil {
		return fmt.Errorf("column Size: %w", err)
	}
	stream, err := pointer(f[5])
	if err != nil {
		return fmt.Errorf("column Stream: %w", err)
	}
	e := trace.Event{Time: now, Bytes: int64(size), Space: pressure.Device(0), Stream: l.book.stream(stream)}
	if f[2] == "allocate failure" {
		e.Kind = trace.Refuse
		return l.book.add(e)
	}
	addr, err := pointer(f[3])
	if err != nil {
		return fmt.Errorf("column Pointer: %w", err)
	}
	switch {
	case f[2] != "allocate" && f[2] != "free":
		return fmt.Errorf("unknown Action %q (want allocate, free or allocate failure)", f[2])
	case addr == 0:
		return nil
	case f[2] == "allocate":
		return l.book.alloc(e, addr)
	}
	return l.book.free(e, addr)
}

// pointer reads what C++ prints for %p.
func pointer(text string) (uint64, error) {
	if text == "(nil)" || text == "nullptr" {
		return 0, nil
	}
	return strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X"), 16, 64)
}

// time returns ns since 1970, or since the midnight before the first row.
func (l *rmmLog) time(text string) (int64, error) {
	clock := timeOfDay
	if !strings.Contains(text, ":") {
		clock = sinceEpoch
	}
	if l.clock == "" {
		l.clock = clock
	}
	if l.clock != clock {
		return 0, errors.New("another form of time than in the rows before")
	}
	if clock == sinceEpoch {
		since, err := time.ParseDuration(text + "s")
		if err == nil && since < 0 {
			err = errors.New("before 1970")
		}
		return int64(since), err
	}
	if strings.Count(text, ":") == 3 {
		point := strings.LastIndexByte(text, ':')
		text = text[:point] + "." + text[point+1:]
	}
	at, err := time.Parse(time.TimeOnly, text)
	if err != nil {
		return 0, errors.New("want HH:MM:SS.ffffff")
	}
	const day = 24 * int64(time.Hour)
	ns := int64(at.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)))
	switch {
	case l.last-ns > day/2:
		l.days++
	case ns-l.last > day/2 && l.days > 0: // a row from before midnight, late
		return ns + (l.days-1)*day, nil
	}
	l.last = ns
	return ns + l.days*day, nil
}
