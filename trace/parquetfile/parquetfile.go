// Package parquetfile writes traces as Parquet files, for tools that do not read
// the Arrow files that replay writes. It is a package of its own because the
// library's Parquet is large.
package parquetfile

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
)

// groupRows is the most rows of a Parquet row group.
const groupRows = 1 << 20

// Write writes t as a Parquet file, packed with zstd. Columns and metadata are
// those of package arrowfile. The same trace always gives the same bytes.
func Write(w io.Writer, t *trace.Trace) error {
	table := arrowfile.NewTable(t)
	defer table.Release()
	properties := parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithMaxRowGroupLength(groupRows),
		parquet.WithCreatedBy("eagergc"),
		// Both columns grow in small steps: deltas are small where a dictionary is not.
		parquet.WithDictionaryFor("time", false), parquet.WithEncodingFor("time", parquet.Encodings.DeltaBinaryPacked),
		parquet.WithDictionaryFor("id", false), parquet.WithEncodingFor("id", parquet.Encodings.DeltaBinaryPacked),
	)
	out, err := pqarrow.NewFileWriter(table.Schema(), keepOpen{w}, properties, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return fmt.Errorf("parquetfile: %w", err)
	}
	for start := 0; start < len(t.Events); start += groupRows {
		batch := table.Batch(t.Events[start:min(start+groupRows, len(t.Events))], t.Labels)
		err := out.Write(batch)
		batch.Release()
		if err != nil {
			return fmt.Errorf("parquetfile: event %d: %w", start, err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("parquetfile: %w", err)
	}
	return nil
}

// keepOpen hides the Close method of a writer, which the library would call.
type keepOpen struct{ io.Writer }
