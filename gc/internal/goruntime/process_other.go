//go:build !unix

package goruntime

import "time"

// ProcessTime returns 0, because the processor time is unknown.
func ProcessTime() time.Duration { return 0 }
