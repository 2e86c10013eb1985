// Package parquetfile writes traces as Parquet files, for tools that do not read
// the Arrow files that replay writes. It is a package of its own because the
// library's Parquet is large.
package parquetfile

import (
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
)

// groupRows is the most rows of a Parquet row group.
const groupRows = 1 << 20

// Write writes t as a Parquet file, packed with zstd. Columns and metadata are
// those of package arrowfile, but that times and durations are the integers time_ns
// and duration_ns: Parquet has no durations. The same trace always gives the same bytes.
func Write(w io.Writer, t *trace.Trace) error {
	table := arrowfile.NewTable(t)
	defer table.Release()
	properties := parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithMaxRowGroupLength(groupRows),
		parquet.WithCreatedBy("eagergc"),
		// Both columns grow in small steps: deltas are small where a dictionary is not.
		parquet.WithDictionaryFor("time_ns", false), parquet.WithEncodingFor("time_ns", parquet.Encodings.DeltaBinaryPacked),
		parquet.WithDictionaryFor("id", false), parquet.WithEncodingFor("id", parquet.Encodings.DeltaBinaryPacked),
	)
	schema := integerSchema(table.Schema())
	out, err := pqarrow.NewFileWriter(schema, keepOpen{w}, properties, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return fmt.Errorf("parquetfile: %w", err)
	}
	for start := 0; start < len(t.Events); start += groupRows {
		batch := table.Batch(t.Events[start:min(start+groupRows, len(t.Events))], t.Labels)
		err := out.Write(integers(schema, batch))
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

// integerSchema returns s with integers in the place of durations.
func integerSchema(s *arrow.Schema) *arrow.Schema {
	fields := s.Fields()
	for i := range fields {
		if fields[i].Type.ID() == arrow.DURATION {
			fields[i].Name += "_ns"
			fields[i].Type = arrow.PrimitiveTypes.Int64
		}
	}
	metadata := s.Metadata()
	return arrow.NewSchema(fields, &metadata)
}

// integers returns a batch with the columns of schema. It is valid as long as batch.
func integers(schema *arrow.Schema, batch arrow.RecordBatch) arrow.RecordBatch {
	list := slices.Clone(batch.Columns())
	for i, column := range list {
		if d := column.Data(); d.DataType().ID() == arrow.DURATION {
			list[i] = array.NewInt64Data(array.NewData(arrow.PrimitiveTypes.Int64, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset()))
		}
	}
	return array.NewRecordBatch(schema, list, batch.NumRows())
}

// keepOpen hides the Close method of a writer, which the library would call.
type keepOpen struct{ io.Writer }
