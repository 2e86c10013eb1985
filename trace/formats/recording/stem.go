package recording

import (
	"path/filepath"
	"regexp"
)

// endings are those of trace files, behind a name of at least one character.
var endings = regexp.MustCompile(`(?i)(.)(\.(gz|zst|xz|pickle|pkl|jsonl?|snapshot|kineto|sync|trace|pt|csv|replay|arrows?))+$`)

// Stem returns the name of a trace file without its folder and its endings:
// gpt2 for traces/gpt2.snapshot.pickle.gz.
func Stem(path string) string { return endings.ReplaceAllString(filepath.Base(path), "$1") }
