package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// formatBytes writes n in the IEC unit that suits it, as 1.50 GiB.
func formatBytes(n int64) string { return pressure.Bytes(n).String() }

// parseBytes reads a number of bytes with the units of [pressure.ParseLimit].
func parseBytes(text string) (int64, error) {
	l, err := pressure.ParseLimit(text)
	switch {
	case err != nil:
		return 0, err
	case l.Percent > 0 || l.Bytes == 0:
		return 0, fmt.Errorf("%q is not a number of bytes", text)
	}
	return l.Bytes, nil
}

// formatDuration writes d with three significant digits: 880ms, 1.54s.
func formatDuration(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}}
	for _, u := range units {
		if d >= u.size {
			return three(float64(d)/float64(u.size)) + u.name
		}
	}
	if d == 0 {
		return "0"
	}
	return strconv.FormatInt(int64(d), 10) + "ns"
}

// three writes v with three significant digits and no exponent.
func three(v float64) string {
	switch {
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func formatPercent(share float64) string { return three(100*share) + "%" }

// formatCount writes n with its thousands apart: 160,000.
func formatCount(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// A table is rows of cells. The first column is printed on the left of its
// width, the others on the right; a cell that begins with left is on the left
// too, and close to the cell before it.
type table [][]string

const left = "\t"

func (t table) print(w io.Writer) {
	width := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			text, onLeft := strings.CutPrefix(cell, left)
			if cell = trace.Plain(text); onLeft {
				cell = left + cell
			}
			row[i] = cell
			width[i] = max(width[i], utf8.RuneCountInString(strings.TrimPrefix(cell, left)))
		}
	}
	for _, row := range t {
		var b strings.Builder
		for i, cell := range row {
			text, onLeft := strings.CutPrefix(cell, left)
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(text))
			switch {
			case i == 0:
				b.WriteString("  " + text + pad)
			case onLeft:
				b.WriteString(" " + text + pad)
			default:
				b.WriteString("  " + pad + text)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// textWidth is the width of text that is to be read: that of a small terminal.
const textWidth = 80

// wrap breaks a text of one paragraph into lines of at most textWidth.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > textWidth:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
