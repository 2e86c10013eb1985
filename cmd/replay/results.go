package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/eagergc/eagergc/sim"
)

// readResults reads the JSON lines of a comparison, or returns nil if the file
// begins with something else.
func readResults(path string) ([]sim.Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	if head, _ := r.Peek(9); !bytes.Equal(head, []byte(`{"trace":`)) {
		return nil, nil
	}
	return parseResults(path, r)
}

// parseResults reads JSON results, one to a line; path is for errors. Cells
// without an outcome are left out.
func parseResults(path string, r io.Reader) ([]sim.Result, error) {
	results := []sim.Result{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		var row struct {
			sim.Result
			Elapsed *int64 `json:"elapsed_ns"` // null where there is no outcome
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if row.Elapsed != nil {
			row.Result.Elapsed = time.Duration(*row.Elapsed)
			results = append(results, row.Result)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return results, nil
}
