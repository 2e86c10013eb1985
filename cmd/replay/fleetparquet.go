package main

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/eagergc/eagergc/sim/fleet"
)

// A fleetColumn is one column of cells.parquet: a text or a number.
type fleetColumn struct {
	name   string
	text   func(*fleet.Row) string
	number func(*fleet.Row) int64
}

// fleetColumns have the names of the JSON results, and those of the job.
var fleetColumns = []fleetColumn{
	{name: "job", text: func(r *fleet.Row) string { return r.Name }},
	{name: "group", text: func(r *fleet.Row) string { return r.Group }},
	{name: "recording", text: func(r *fleet.Row) string { return r.Hash }},
	{name: "policy", text: func(r *fleet.Row) string { return r.Policy }},
	{name: "limit", text: func(r *fleet.Row) string { return r.Cell.Limit }},
	{name: "limit_bytes", number: func(r *fleet.Row) int64 { return r.Outcome.Limit }},
	{name: "cycle_ns", number: func(r *fleet.Row) int64 { return int64(r.Cycle) }},
	{name: "collections", number: func(r *fleet.Row) int64 { return r.Collections }},
	{name: "refusal_collections", number: func(r *fleet.Row) int64 { return r.Refusals }},
	{name: "failed_allocs", number: func(r *fleet.Row) int64 { return r.Failed }},
	{name: "exposed_pause_ns", number: func(r *fleet.Row) int64 { return r.Exposed }},
	{name: "max_pause_ns", number: func(r *fleet.Row) int64 { return r.Longest }},
	{name: "gc_busy_ns", number: func(r *fleet.Row) int64 { return r.Busy }},
	{name: "peak_live_bytes", number: func(r *fleet.Row) int64 { return r.PeakLive }},
	{name: "mean_live_bytes", number: func(r *fleet.Row) int64 { return r.MeanLive }},
	{name: "mean_garbage_bytes", number: func(r *fleet.Row) int64 { return r.MeanGarbage }},
	{name: "elapsed_ns", number: func(r *fleet.Row) int64 { return r.Elapsed }},
	{name: "span_ns", number: func(r *fleet.Row) int64 { return r.Features.Span }},
	{name: "wait_ns", number: func(r *fleet.Row) int64 { return r.Features.Wait }},
	{name: "peak_reachable_bytes", number: func(r *fleet.Row) int64 { return r.Features.PeakReachable }},
	{name: "allocated_bytes", number: func(r *fleet.Row) int64 { return r.Features.AllocatedBytes }},
	{name: "allocs", number: func(r *fleet.Row) int64 { return r.Features.Allocs }},
	{name: "syncs", number: func(r *fleet.Row) int64 { return r.Features.Syncs }},
}

// fleetGroupRows is the most rows of a row group: some MiB of memory.
const fleetGroupRows = 1 << 16

// writeCellsParquet writes a row for each job and cell, by job, as a Parquet file. A
// cell for which an optimum has no schedule has nulls where the others have what came
// of them.
func writeCellsParquet(ctx context.Context, w io.Writer, l *fleet.Local, sources []fleet.Source) error {
	var fields []arrow.Field
	for _, c := range fleetColumns {
		kind := arrow.DataType(arrow.PrimitiveTypes.Int64)
		if c.text != nil {
			kind = arrow.BinaryTypes.String
		}
		fields = append(fields, arrow.Field{Name: c.name, Type: kind, Nullable: true})
	}
	schema := arrow.NewSchema(fields, nil)
	properties := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithVersion(parquet.V2_LATEST), parquet.WithCreatedBy("eagergc"))
	out, err := pqarrow.NewFileWriter(schema, struct{ io.Writer }{w}, properties, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return err
	}
	rows := array.NewRecordBuilder(arrowmemory.DefaultAllocator, schema)
	defer rows.Release()
	n := 0
	flush := func() error {
		batch := rows.NewRecordBatch()
		defer batch.Release()
		n = 0
		return out.Write(batch)
	}
	add := func(r *fleet.Row) error {
		appendRow(rows, r)
		if n++; n == fleetGroupRows {
			return flush()
		}
		return nil
	}
	if err := l.Jobs(ctx, sources, func(s fleet.Source, j *fleet.Job) error { return l.Mapper.Rows(s.Name, j, add) }); err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	return out.Close()
}

func appendRow(rows *array.RecordBuilder, r *fleet.Row) {
	const outcome, job = 7, 17 // the first column of what came of it, and of the job's features
	for i, c := range fleetColumns {
		switch b := rows.Field(i).(type) {
		case *array.StringBuilder:
			b.Append(c.text(r))
		case *array.Int64Builder:
			if r.None && i >= outcome && i < job {
				b.AppendNull()
			} else {
				b.Append(c.number(r))
			}
		}
	}
}
