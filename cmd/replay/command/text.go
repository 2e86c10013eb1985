package command

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A table is rows of cells. The cells of the first column are aligned left, the others right. A
// cell that begins with left is aligned left too, and stands close to the cell before it.
type table [][]string

const left = "\t"

func (t table) print(w io.Writer) {
	width := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			text, onLeft := strings.CutPrefix(cell, left)
			row[i] = recording.Plain(text)
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
			if onLeft {
				row[i] = left + row[i]
			}
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

// textWidth is the width of paragraphs: that of a small terminal.
const textWidth = 80

// wrap breaks a paragraph into lines of at most textWidth.
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
