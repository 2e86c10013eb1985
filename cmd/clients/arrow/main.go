// Arrow reads record batches from Arrow streams, with Arrow's allocator over C's malloc. It sums the
// values by city, of the rows whose note contains a given word.
package main

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const rows = 200_000 // of a batch: 200,000 x (8 + 4 + 24) bytes, 7 MB

var fields = arrow.NewSchema([]arrow.Field{
	{Name: "value", Type: arrow.PrimitiveTypes.Float64},
	{Name: "city", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}},
	{Name: "note", Type: arrow.BinaryTypes.String},
}, nil)

func main() {
	allocator := mallocator.NewMallocator()
	frame.Main("arrow", frame.Client{
		Workers: 2, Requests: 400,
		Gauge: func() int64 { return int64(allocator.AllocatedBytes()) },
		Start: func(w *frame.Way) (frame.Service, error) {
			stream, err := encode()
			if err != nil {
				return nil, err
			}
			return func(int) error { return serve(w, allocator, stream) }, nil
		},
	})
}

// A table is a handle to a record batch.
type table struct{ batch arrow.RecordBatch }

func serve(w *frame.Way, allocator memory.Allocator, stream []byte) error {
	r, err := ipc.NewReader(bytes.NewReader(stream), ipc.WithAllocator(allocator))
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		t := &table{r.RecordBatch()}
		t.batch.Retain()
		defer frame.Keep(w, t, int64(len(stream)), arrow.RecordBatch.Release, t.batch)()
		sum := 0.0
		for _, v := range byCity(t.batch) {
			sum += v
		}
		if want := float64(rows) * (rows - 1) / 2; sum != want {
			return fmt.Errorf("sum %v, want %v", sum, want)
		}
		runtime.KeepAlive(t)
	}
	return r.Err()
}

func byCity(batch arrow.RecordBatch) map[string]float64 {
	values, cities, notes := batch.Column(0).(*array.Float64), batch.Column(1).(*array.Dictionary), batch.Column(2).(*array.String)
	names := cities.Dictionary().(*array.String)
	sums := make(map[string]float64)
	for i := range int(batch.NumRows()) {
		if strings.Contains(notes.Value(i), "length") {
			sums[names.Value(cities.GetValueIndex(i))] += values.Value(i)
		}
	}
	return sums
}

// encode returns a stream of one batch.
func encode() ([]byte, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, fields)
	defer b.Release()
	for i := range rows {
		b.Field(0).(*array.Float64Builder).Append(float64(i))
		if err := b.Field(1).(*array.BinaryDictionaryBuilder).AppendString(fmt.Sprintf("city %d", i%100)); err != nil {
			return nil, err
		}
		b.Field(2).(*array.StringBuilder).Append("a note of some length")
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(fields))
	if err := w.Write(batch); err != nil {
		return nil, err
	}
	return out.Bytes(), w.Close()
}
