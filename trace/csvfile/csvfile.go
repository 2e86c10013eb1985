// Package csvfile writes traces as CSV, for spreadsheets.
package csvfile

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/eagergc/eagergc/trace"
)

// Columns are the names in the first row of a CSV file, with their units. They are the
// columns of package arrowfile.
var Columns = []string{"time_ns", "kind", "space", "id", "bytes", "duration_ns", "stream", "aux", "label"}

// Cell returns text as a cell that no spreadsheet takes for a formula: one that begins
// with = + - @, a tab or the end of a line gets an apostrophe before it.
func Cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return "'" + text
	}
	return text
}

// Write writes one row for each event of t: times in ns, sizes in bytes. Texts are
// quoted as in RFC 4180, and labels are as [Cell] says. The file has no Name, Start
// and Meta.
func Write(w io.Writer, t *trace.Trace) error {
	out := csv.NewWriter(w)
	row := append([]string(nil), Columns...)
	out.Write(row) // the first error stays, and Error returns it
	for _, e := range t.Events {
		row[0] = strconv.FormatInt(e.Time, 10)
		row[1] = e.Kind.String()
		row[2] = e.Space.String()
		row[3] = strconv.FormatUint(e.ID, 10)
		row[4] = strconv.FormatInt(e.Bytes, 10)
		row[5] = strconv.FormatInt(int64(e.Duration), 10)
		row[6] = strconv.FormatUint(uint64(e.Stream), 10)
		row[7] = strconv.FormatUint(uint64(e.Aux), 10)
		row[8] = Cell(t.Label(e))
		out.Write(row)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("csvfile: %w", err)
	}
	return nil
}
