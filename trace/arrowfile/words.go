package arrowfile

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// numbers are what a column of words stands for. Another writer may have them in
// another order than ours, or may lack some.
type numbers struct {
	table [256]uint8
	last  arrow.ArrayData // the dictionary that the table is of
	words int             // how many it has
}

// of returns the indices of a column into the table: of words, or of version 1, which
// has the numbers themselves.
func (n *numbers) of(column arrow.Array, parse func(word string) (uint8, error)) ([]uint8, error) {
	d, ok := column.(*array.Dictionary)
	if !ok {
		if n.words == 0 {
			for i := range n.table {
				n.table[i] = uint8(i)
			}
			n.words = len(n.table)
		}
		return column.(*array.Uint8).Uint8Values(), nil
	}
	if all := d.Dictionary().(*array.String); all.Data() != n.last {
		if all.Len() > len(n.table) {
			return nil, overBound("words of a dictionary", int64(all.Len()), int64(len(n.table)))
		}
		for i := range all.Len() {
			number, err := parse(all.Value(i))
			if err != nil {
				return nil, err
			}
			n.table[i] = number
		}
		n.last, n.words = all.Data(), all.Len()
	}
	indices := d.Indices().(*array.Uint8).Uint8Values()
	if len(indices) > 0 && int(slices.Max(indices)) >= n.words {
		return nil, fmt.Errorf("word %d of a dictionary of %d", slices.Max(indices), n.words)
	}
	return indices, nil
}

// integers returns the numbers of a column: of durations, or of version 1.
func integers(column arrow.Array) []int64 {
	if d, ok := column.(*array.Duration); ok {
		return arrow.Int64Traits.CastFromBytes(arrow.DurationTraits.CastToBytes(d.DurationValues()))
	}
	return column.(*array.Int64).Int64Values()
}
