package csvfile_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/csvfile"
	"github.com/eagergc/eagergc/trace/samples"
)

func traces(t *testing.T) []*trace.Trace {
	t.Helper()
	real, err := samples.Open("gp")
	if err != nil {
		t.Fatal(err)
	}
	odd := &trace.Trace{Name: "odd", Meta: map[string]string{"a": "b"}, Labels: []string{"", "a,\"b\"\nc", "größer"}, Start: time.Unix(5, 7).UTC()}
	odd.Events = []trace.Event{
		{Time: -5, Kind: trace.Alloc, ID: 1<<64 - 1, Bytes: 1 << 61, Space: 255, Aux: 1},
		{Kind: trace.Free, ID: 1<<64 - 1, Bytes: 1 << 61, Space: 255, Aux: 1<<32 - 1, Stream: 1<<32 - 1},
		{Kind: trace.Sync, Duration: 1 << 62, Aux: 2},
	}
	return []*trace.Trace{real, odd, {Meta: map[string]string{}, Labels: []string{""}}}
}

// fromCSV reads what Write writes.
func fromCSV(t *testing.T, file []byte) *trace.Trace {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows[0], csvfile.Columns) {
		t.Fatalf("columns %q", rows[0])
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	tr := new(trace.Trace)
	labels := trace.NewLabeler(tr)
	for _, row := range rows[1:] {
		id, err := strconv.ParseUint(row[3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		space, err := pressure.ParseSpace(row[2])
		if err != nil {
			t.Fatal(err)
		}
		e := trace.Event{Time: number(row[0]), ID: id, Bytes: number(row[4]), Duration: time.Duration(number(row[5])),
			Stream: uint32(number(row[6])), Aux: uint32(number(row[7])), Space: space}
		for e.Kind.String() != row[1] {
			e.Kind++
		}
		if e.Kind.Labelled() {
			text, safe := strings.CutPrefix(row[8], "'")
			if !safe || !strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
				text = row[8]
			}
			e.Aux = labels.Label(text)
		}
		tr.Record(e)
	}
	return tr
}

func TestCSV(t *testing.T) {
	for _, tr := range traces(t) {
		var b bytes.Buffer
		if err := csvfile.Write(&b, tr); err != nil {
			t.Fatal(err)
		}
		if got := fromCSV(t, b.Bytes()); !slices.Equal(got.Events, tr.Events) || !slices.Equal(got.Labels, tr.Labels) {
			t.Errorf("%s: the file reads as another trace", tr.Name)
		}
	}
}

func TestErrors(t *testing.T) {
	full := errors.New("disk full")
	for _, tr := range traces(t) {
		if err := csvfile.Write(failing{full}, tr); !errors.Is(err, full) {
			t.Errorf("%s: %v", tr.Name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A label is no formula to a spreadsheet.
func TestFormula(t *testing.T) {
	for text, want := range map[string]string{"=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)", "-x": "'-x", "+x": "'+x", "\t=1": "'\t=1", "x=1": "x=1", "": ""} {
		if got := csvfile.Cell(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
