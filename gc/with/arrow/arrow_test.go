package arrow

import (
	"bytes"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/with/arrow/arrowmem"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

var fields = arrow.NewSchema([]arrow.Field{
	{Name: "value", Type: arrow.PrimitiveTypes.Float64},
	{Name: "city", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}},
	{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String)},
}, nil)

const rows = 10_000

type writer interface {
	Write(arrow.RecordBatch) error
	Close() error
}

// stream is an IPC stream of some batches, packed with zstd.
func stream(t *testing.T, batches int) []byte {
	t.Helper()
	var out bytes.Buffer
	write(t, ipc.NewWriter(&out, options...), batches)
	return out.Bytes()
}

// file is the same in the file format.
func file(t *testing.T, batches int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := ipc.NewFileWriter(&out, options...)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, batches)
	return out.Bytes()
}

var options = []ipc.Option{ipc.WithSchema(fields), ipc.WithZstd(), ipc.WithDictionaryDeltas(true)}

func write(t *testing.T, w writer, batches int) {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, fields)
	for range batches {
		for i := range rows {
			b.Field(0).(*array.Float64Builder).Append(float64(i))
			if err := b.Field(1).(*array.BinaryDictionaryBuilder).AppendString(fmt.Sprint("city ", i%100)); err != nil {
				t.Fatal(err)
			}
			tags := b.Field(2).(*array.ListBuilder)
			tags.Append(true)
			tags.ValueBuilder().(*array.StringBuilder).Append("a tag")
		}
		if err := w.Write(b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func reader(t *testing.T, limit int64) (*gc.Collector, *arrowmem.Allocator, *pool.Pool) {
	t.Helper()
	c, err := gc.New(gc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pool.New(pool.Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: limit}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); c.Close() })
	return c, arrowmem.New(p), p
}

// Batches that nobody releases stay under the limit, keep their values while they are in use, and
// go back.
func TestReadBatchesGoBack(t *testing.T) {
	streamed, filed := stream(t, 5), file(t, 5)
	for name, read := range map[string]func(*arrowmem.Allocator) iter.Seq2[arrow.RecordBatch, error]{
		"stream": func(a *arrowmem.Allocator) iter.Seq2[arrow.RecordBatch, error] {
			return Read(a, bytes.NewReader(streamed))
		},
		"file": func(a *arrowmem.Allocator) iter.Seq2[arrow.RecordBatch, error] {
			return ReadFile(a, bytes.NewReader(filed))
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, a, p := reader(t, 16<<20)
			for range 20 { // 100 batches of 0.4 MB
				n := 0
				for batch, err := range read(a) {
					if err != nil {
						t.Fatal(err)
					}
					n++
					checkBatch(t, batch)
				}
				if n != 5 {
					t.Fatalf("%d batches", n)
				}
			}
			for end := time.Now().Add(20 * time.Second); p.Sample().Live > 0; runtime.GC() {
				if time.Now().After(end) {
					t.Fatalf("%d bytes are live", p.Sample().Live)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

func checkBatch(t *testing.T, batch arrow.RecordBatch) {
	t.Helper()
	sum := 0.0
	for _, v := range batch.Column(0).(*array.Float64).Values() {
		sum += v
	}
	city := batch.Column(1).(*array.Dictionary)
	if name := city.Dictionary().(*array.String).Value(city.GetValueIndex(123)); sum != rows*(rows-1)/2 || name != "city 23" {
		t.Fatalf("sum %v, city %q", sum, name)
	}
	runtime.KeepAlive(batch)
}

func TestReadErrors(t *testing.T) {
	_, a, _ := reader(t, 16<<20)
	data := stream(t, 2)
	for name, cut := range map[string][]byte{"empty": nil, "no stream": []byte("not a stream at all"), "cut off": data[:len(data)*3/4]} {
		failed := false
		for _, err := range Read(a, bytes.NewReader(cut)) {
			failed = err != nil
		}
		if !failed {
			t.Errorf("%s: no error", name)
		}
		failed = false
		for _, err := range ReadFile(a, bytes.NewReader(cut)) {
			failed = err != nil
		}
		if !failed {
			t.Errorf("%s: no error where a file was to be read", name)
		}
	}
	for _, err := range Read(a, bytes.NewReader(data)) { // whoever stops early leaves nothing behind
		if err != nil {
			t.Fatal(err)
		}
		break
	}
}

// A batch that the program has built itself is left to the collector in one call, once.
func TestManage(t *testing.T) {
	_, a, p := reader(t, 16<<20)
	b := array.NewRecordBuilder(a, fields)
	for i := range rows {
		b.Field(0).(*array.Float64Builder).Append(float64(i))
		if err := b.Field(1).(*array.BinaryDictionaryBuilder).AppendString("a city"); err != nil {
			t.Fatal(err)
		}
		b.Field(2).(*array.ListBuilder).AppendNull()
	}
	batch := b.NewRecordBatch()
	b.Release()
	buffers, err := Manage(a, batch)
	if err != nil || buffers < 4 { // values, and indices, offsets and names
		t.Fatalf("%d buffers, %v", buffers, err)
	}
	if again, err := Manage(a, batch); err != nil || again != 0 {
		t.Errorf("%d buffers the second time, %v", again, err)
	}
	for range 3 {
		runtime.GC()
	}
	if v := batch.Column(0).(*array.Float64).Value(rows - 1); v != rows-1 || p.Sample().Live < 8*rows {
		t.Errorf("value %v, %d bytes are live while the batch is in use", v, p.Sample().Live)
	}
	runtime.KeepAlive(batch)
	batch = nil
	for end := time.Now().Add(20 * time.Second); p.Sample().Live > 0; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are live", p.Sample().Live)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestNew(t *testing.T) {
	c, _, _ := reader(t, 1<<20)
	a, err := New(c, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("2 MiB under a limit of 1 MiB")
		}
	}()
	a.Allocate(2 << 20)
}
