package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A folder is the files of a report, by their names. The one whose name ends in .md is the report.
type folder map[string][]byte

// save writes the files into a folder. If path is empty it prints the report.
func (f folder) save(path string, stdout io.Writer) error {
	if path != "" {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	for name, text := range f {
		var err error
		if path != "" {
			err = os.WriteFile(filepath.Join(path, name), text, 0o644)
		} else if filepath.Ext(name) == ".md" {
			_, err = stdout.Write(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A markdown is a page that is written from its beginning to its end.
type markdown struct{ bytes.Buffer }

// head writes the first row of a table and the rule below it.
func (r *markdown) head(cells ...any) {
	r.row(cells...)
	r.WriteString("|" + strings.Repeat("---|", len(cells)) + "\n")
}

func (r *markdown) row(cells ...any) {
	for _, c := range cells {
		fmt.Fprintf(r, "| %v ", c)
	}
	r.WriteString("|\n")
}
