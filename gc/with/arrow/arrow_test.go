package arrow_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/eagergc/eagergc/gc/policy"
	with "github.com/eagergc/eagergc/gc/with/arrow"
)

var fields = arrow.NewSchema([]arrow.Field{
	{Name: "value", Type: arrow.PrimitiveTypes.Float64},
	{Name: "city", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}},
	{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String)},
}, nil)

const rows = 10_000

// stream is an IPC stream of some batches, packed with zstd.
func stream(t *testing.T, batches int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(fields), ipc.WithZstd(), ipc.WithDictionaryDeltas(true))
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
	return out.Bytes()
}

// Batches that nobody releases stay under the limit, keep their values while they are in use, and
// go back.
func TestReadBatchesGoBack(t *testing.T) {
	_, p, a := open(t, policy.MustParse("threshold:0.5"))
	data := stream(t, 5)
	for range 80 { // 400 batches of 0.4 MB
		n := 0
		for batch, err := range with.Read(a, bytes.NewReader(data)) {
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
	_, _, a := open(t, policy.Spec{})
	data := stream(t, 2)
	for name, cut := range map[string][]byte{"empty": nil, "no stream": []byte("not a stream at all"), "cut off": data[:len(data)*3/4]} {
		failed := false
		for _, err := range with.Read(a, bytes.NewReader(cut)) {
			failed = err != nil
		}
		if !failed {
			t.Errorf("%s: no error", name)
		}
	}
	for _, err := range with.Read(a, bytes.NewReader(data)) { // whoever stops early leaves nothing behind
		if err != nil {
			t.Fatal(err)
		}
		break
	}
}
