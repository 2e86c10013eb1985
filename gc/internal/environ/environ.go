// Package environ reads the variables of the environment that package gc and those below it obey. One that
// cannot be read is said once, in the log, and counts as not set; it takes no other with it.
package environ

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/eagergc/eagergc/pressure"
)

// None is the value of a variable that says: no limit, no policy.
const None = "none"

// Text is what a variable says, without spaces around it; "" if it is not set.
func Text(name string) string { return strings.TrimSpace(os.Getenv(name)) }

var said sync.Map // texts of warnings

// Refuse says, once, that a variable cannot be read.
func Refuse(name string, why error) {
	text := fmt.Sprintf("%s=%q cannot be read, and counts as not set: %v", name, os.Getenv(name), why)
	if _, before := said.LoadOrStore(text, nil); !before {
		slog.Warn("eagergc: " + text)
	}
}

// Choice is which of some words a variable says, whatever their case; the first one if it says nothing. The words
// on, true, yes and 1 are one, and so are off, false, no, 0 and none.
func Choice(name string, words ...string) string {
	text := strings.ToLower(Text(name))
	for _, same := range [][]string{{"on", "true", "yes", "1"}, {"off", "false", "no", "0", None}} {
		if slices.Contains(same, text) {
			text = same[0]
		}
	}
	switch {
	case slices.Contains(words, text):
		return text
	case text != "":
		Refuse(name, errors.New("want "+strings.Join(words, ", ")))
	}
	return words[0]
}

// HostLimit is the limit for memory of the host that the environment sets, the hard one before the soft one, in bytes, of a
// host with total bytes, and at most those where they are known. Set is false if it sets none; a limit
// of 0 bytes that is set means that there is to be none.
func HostLimit(total int64) (bytes int64, set bool) {
	for _, name := range []string{"EAGERGC_HOST_HARD_MEMORY_LIMIT", "EAGERGC_HOST_SOFT_MEMORY_LIMIT"} {
		text := Text(name)
		if text == "" {
			continue
		}
		limit, err := pressure.ParseLimit(text)
		if err == nil {
			bytes, err = limit.Of(total)
		}
		if err != nil {
			Refuse(name, err)
			continue
		}
		if total > 0 {
			bytes = min(bytes, total)
		}
		return bytes, true
	}
	return 0, false
}
