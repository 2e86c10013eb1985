package gc

import "time"

const (
	ms = time.Millisecond
	MB = 1000 * 1000
	GB = 1000 * MB
)
