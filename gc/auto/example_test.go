package auto_test

import (
	"context"
	"fmt"
	"time"

	"github.com/eagergc/eagergc/gc"
)

import _ "github.com/eagergc/eagergc/gc/auto"

// The import is all that a program needs; this one also asks what its memory is.
func Example() {
	collector := gc.Default()
	fmt.Print(collector.Diagnose(context.Background(), 2*time.Second))
}
