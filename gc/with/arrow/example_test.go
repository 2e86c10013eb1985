package arrow_test

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	with "github.com/eagergc/eagergc/gc/with/arrow"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// A computation over Arrow arrays that never calls Release, in a pool of 16 MiB
// through which 200 MiB go.
func Example() {
	c, err := gc.New(gc.Config{Policy: policy.MustParse("threshold:0.5").New()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	p, err := pool.New(pool.Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 16 << 20}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	mem := with.New(p)
	ctx := compute.WithAllocator(context.Background(), mem)

	b := array.NewInt64Builder(mem)
	for i := range int64(1 << 17) {
		b.Append(i)
	}
	x := compute.NewDatum(b.NewArray())
	y := x
	for range 200 {
		y, err = compute.Add(ctx, compute.ArithmeticOptions{}, x, y)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := mem.Manage(y.(*compute.ArrayDatum).Value); err != nil {
			fmt.Println(err)
			return
		}
	}
	last := y.(*compute.ArrayDatum).MakeArray().(*array.Int64)
	fmt.Println(last.Value(1000))

	s := p.Stats()
	fmt.Println("200 MiB handed out:", s.Allocated > 200<<20)
	fmt.Println("peak within the limit:", s.ReservedPeak <= 16<<20)
	fmt.Println("failed:", s.Failures)
	// Output:
	// 201000
	// 200 MiB handed out: true
	// peak within the limit: true
	// failed: 0
}
