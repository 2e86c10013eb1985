//go:build !unix

package goruntime

import "time"

// Used returns 0, because the processor time is unknown.
func (*Runtime) Used() time.Duration { return 0 }
