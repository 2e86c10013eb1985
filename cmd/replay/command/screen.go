package command

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// A printer writes text for people. It keeps the first error of its writer, so
// that a table is printed without asking after each line. On a terminal it knows
// the width and folds what is longer; elsewhere it changes nothing.
type printer struct {
	w      io.Writer
	err    error
	width  int    // columns; 0: no terminal
	colour bool   // bold and colours are understood and wanted
	rest   []byte // of a line that has not ended
}

// newPrinter returns the printer of w. Colours are for terminals; $NO_COLOR, if it
// is not empty, and $TERM=dumb turn them off (no-color.org).
func newPrinter(w io.Writer) *printer {
	p := &printer{w: w}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return p
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 40 { // too narrow to fold for
		return p
	}
	p.width = width
	p.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return p
}

// printerFor is newPrinter where text is asked for. Other formats are for machines:
// they are left as they are.
func printerFor(w io.Writer, format string) *printer {
	if format != "text" {
		return &printer{w: w}
	}
	return newPrinter(w)
}

// asPrinter returns w if it is a printer, and else one that writes to it.
func asPrinter(w io.Writer) *printer {
	if p, ok := w.(*printer); ok {
		return p
	}
	return newPrinter(w)
}

func (p *printer) Write(b []byte) (int, error) {
	if p.err != nil {
		return len(b), nil
	}
	if p.width == 0 {
		_, p.err = p.w.Write(b)
		return len(b), nil
	}
	p.rest = append(p.rest, b...)
	end := strings.LastIndexByte(string(p.rest), '\n') + 1
	var out strings.Builder
	for line := range strings.Lines(string(p.rest[:end])) {
		out.WriteString(fold(line, p.width))
	}
	p.rest = append([]byte(nil), p.rest[end:]...)
	_, p.err = io.WriteString(p.w, out.String())
	return len(b), nil
}

// fold breaks a line between words where it is wider than a screen. What follows
// is indented to where the second column of the line begins. A line with colours
// has been fitted before.
func fold(line string, width int) string {
	if utf8.RuneCountInString(line) <= width+1 || strings.Contains(line, "\x1b") {
		return line
	}
	indent := hanging(line, width)
	var b strings.Builder
	column := 0
	for line != "" {
		word := line
		if i := strings.IndexByte(strings.TrimLeft(line, " "), ' '); i >= 0 {
			word = line[:len(line)-len(strings.TrimLeft(line, " "))+i]
		}
		line = line[len(word):]
		n := utf8.RuneCountInString(strings.TrimSuffix(word, "\n"))
		if column+n > width && column > indent {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			word = strings.TrimLeft(word, " ")
			column, n = indent, utf8.RuneCountInString(strings.TrimSuffix(word, "\n"))
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// hanging is the column at which the text of a line such as "  name    text"
// begins, or a little more than the line's indent.
func hanging(line string, width int) int {
	start := len(line) - len(strings.TrimLeft(line, " "))
	if i := strings.Index(line[start:], "  "); i >= 0 {
		at := start + i
		at += len(line[at:]) - len(strings.TrimLeft(line[at:], " "))
		if at <= width/2 {
			return at
		}
	}
	return start + 2
}

// bold marks a text on a terminal that understands it.
func (p *printer) bold(text string) string {
	if !p.colour || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// strong marks what is best: bold and green.
func (p *printer) strong(text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[1;32m" + text + "\x1b[0m"
}
