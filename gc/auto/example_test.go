package auto_test

import (
	"fmt"
	"time"

	"github.com/eagergc/eagergc/gc"
)

import _ "github.com/eagergc/eagergc/gc/auto"

// The import is all that a program needs; this one also asks what its memory is.
func Example() {
	collector := gc.Default()
	fmt.Print(collector.Diagnose(2 * time.Second))
}
