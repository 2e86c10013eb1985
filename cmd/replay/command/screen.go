package command

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// A printer writes text for people. It keeps the first error of its writer, so
// that a table is printed without asking after each line. On a terminal it knows
// the width and has colours; elsewhere it changes nothing.
type printer struct {
	w      io.Writer
	err    error
	width  int  // columns; 0: no terminal
	colour bool // bold and colours are understood and wanted
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
	if err != nil || width < 40 { // too narrow for a table
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

func (p *printer) Write(b []byte) (int, error) {
	if p.err != nil {
		return len(b), nil
	}
	_, p.err = p.w.Write(b)
	return len(b), nil
}

// bold marks a text on a terminal that understands it.
func (p *printer) bold(text string) string {
	if !p.colour || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// strong makes the best row bold and green.
func (p *printer) strong(text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[1;32m" + text + "\x1b[0m"
}
