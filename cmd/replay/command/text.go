package command

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// quantity writes a value of a unit: ns, B, B/s, 1/s, ratio, or empty for a count.
func quantity(v float64, unit string) string {
	switch unit {
	case "ns":
		return chart.Duration(time.Duration(v))
	case "B":
		return pressure.Bytes(v).String()
	case "B/s":
		return pressure.Bytes(v).String() + "/s"
	case "ratio":
		return chart.Percent(v)
	}
	return pressure.Count(int64(v))
}

// A table is rows of cells. The first column is printed on the left of its
// width, the others on the right; a cell that begins with left is on the left
// too, and close to the cell before it.
type table [][]string

const left = "\t"

// best stands at the begin of the first cell of the best row.
const best = "\v"

// print writes the table. Where the screen is narrower, columns follow below, with
// the first one again.
func (t table) print(w io.Writer) {
	p, ok := w.(*printer)
	if !ok {
		p = newPrinter(w)
	}
	width := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			text := strings.TrimLeft(cell, left+best)
			plain := recording.Plain(text)
			row[i] = cell[:len(cell)-len(text)] + plain
			width[i] = max(width[i], utf8.RuneCountInString(plain))
		}
	}
	for from := 1; from < len(width) || from == 1; {
		to := t.fitting(width, from, p.width)
		if from > 1 {
			fmt.Fprintln(p)
		}
		t.columns(p, width, from, to)
		from = max(to, from+1)
	}
}

// fitting returns the end of the columns from one on that fit the screen. What
// is on the left belongs to the column before it.
func (t table) fitting(width []int, from, screen int) int {
	if screen == 0 {
		return len(width)
	}
	sum, to := 2+width[0], from
	for to < len(width) {
		next, add := to+1, 2+width[to]
		for next < len(width) && t.onLeft(next) {
			add += 1 + width[next]
			next++
		}
		if sum+add > screen && to > from {
			break
		}
		sum, to = sum+add, next
	}
	return to
}

func (t table) onLeft(column int) bool {
	last := t[len(t)-1]
	return column < len(last) && strings.HasPrefix(last[column], left)
}

// columns writes the first column and those in [from, to).
func (t table) columns(p *printer, width []int, from, to int) {
	for k, row := range t {
		var b strings.Builder
		name, isBest := strings.CutPrefix(row[0], best)
		name = strings.TrimPrefix(name, left)
		b.WriteString("  " + name + strings.Repeat(" ", width[0]-utf8.RuneCountInString(name)))
		for i := from; i < min(to, len(row)); i++ {
			text, onLeft := strings.CutPrefix(row[i], left)
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(text))
			if onLeft {
				b.WriteString(" " + text + pad)
			} else {
				b.WriteString("  " + pad + text)
			}
		}
		line := strings.TrimRight(b.String(), " ")
		switch {
		case isBest:
			line = p.strong(line)
		case k == 0 && len(t) > 1 && len(row) > 2:
			line = p.bold(line)
		}
		fmt.Fprintln(p, line)
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
