//go:build !unix

package gc

import "time"

func processTime() time.Duration { return 0 }
