package recording_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

// The text form of a trace is for tests and for writing by hand.
func ExampleReadText() {
	t, err := recording.ReadText(strings.NewReader(`
0       alloc id=1 bytes=4096 space=device0
1000    alloc id=2 bytes=8192 space=device0
5000    drop  id=1 bytes=4096 space=device0
6000    sync  space=device0 duration=250000 label="item"
`))
	if err != nil {
		log.Fatal(err)
	}
	if err := t.Validate(); err != nil {
		log.Fatal(err)
	}
	s := recording.StatsOf(t)
	fmt.Println(s.Allocs, s.Drops, s.Syncs, s.PeakReachable, s.Span, s.Wait)
	// Output: 2 1 1 12288 6µs 250µs
}

// An invalid trace is refused with the place.
func ExampleReadText_invalid() {
	t, err := recording.ReadText(strings.NewReader("0 alloc id=1 bytes=8\n5 drop id=1 bytes=8\n9 drop id=1 bytes=8"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.Validate())
	// Output: trace: event 2 (drop at 9 ns): object 1 was dropped before
}
