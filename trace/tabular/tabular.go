// Package tabular writes traces as tables that other tools read: CSV, and Parquet
// with the columns of package arrowfile.
package tabular

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
)

// Columns are the names in the first row of a CSV file: those of package
// arrowfile, with kind and space in words.
var Columns = []string{"time", "kind", "space", "id", "bytes", "duration", "stream", "aux", "label"}

// WriteCSV writes one row for each event of t: times in ns, sizes in bytes. Texts
// are quoted as RFC 4180 has it. Name, Start and Meta are not in the file.
func WriteCSV(w io.Writer, t *trace.Trace) error {
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
		row[8] = t.Label(e)
		out.Write(row)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("tabular: csv: %w", err)
	}
	return nil
}

// groupRows is the most rows of a Parquet row group.
const groupRows = 1 << 20

// WriteParquet writes t as a Parquet file, packed with zstd. Its columns and its
// schema's metadata are those of package arrowfile. The same trace gives the same
// bytes.
func WriteParquet(w io.Writer, t *trace.Trace) error {
	table := arrowfile.NewTable(t)
	defer table.Release()
	properties := parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithMaxRowGroupLength(groupRows),
		parquet.WithCreatedBy("eagergc"),
		// Both grow by small steps, which a dictionary of values cannot say.
		parquet.WithDictionaryFor("time", false), parquet.WithEncodingFor("time", parquet.Encodings.DeltaBinaryPacked),
		parquet.WithDictionaryFor("id", false), parquet.WithEncodingFor("id", parquet.Encodings.DeltaBinaryPacked),
	)
	out, err := pqarrow.NewFileWriter(table.Schema(), keepOpen{w}, properties, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return fmt.Errorf("tabular: parquet: %w", err)
	}
	for start := 0; start < len(t.Events); start += groupRows {
		batch := table.Batch(t.Events[start:min(start+groupRows, len(t.Events))], t.Labels)
		err := out.Write(batch)
		batch.Release()
		if err != nil {
			return fmt.Errorf("tabular: parquet: event %d: %w", start, err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("tabular: parquet: %w", err)
	}
	return nil
}

// keepOpen hides that a writer can be closed, which the library would do.
type keepOpen struct{ io.Writer }
