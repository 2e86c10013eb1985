//go:build !linux

package trace_test

import "testing"

const canLimitFileSize = false

func limitFileSize(uint64) {}

func makePipe(t *testing.T) string {
	t.Skip("needs pipes with a name: not on this system")
	return ""
}
