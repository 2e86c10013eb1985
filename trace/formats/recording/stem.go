package recording

import (
	"path/filepath"
	"strings"
)

// Stem returns the name of a trace file without its folder and its endings:
// gpt2 for traces/gpt2.snapshot.pickle.gz.
func Stem(path string) string {
	name := filepath.Base(path)
	for {
		ext := strings.ToLower(filepath.Ext(name))
		if !endings[ext] || len(ext) == len(name) {
			return name
		}
		name = name[:len(name)-len(ext)]
	}
}

var endings = map[string]bool{
	".gz": true, ".zst": true, ".xz": true, ".pickle": true, ".pkl": true, ".json": true, ".jsonl": true,
	".snapshot": true, ".kineto": true, ".sync": true, ".trace": true, ".pt": true, ".csv": true, ".replay": true,
	".arrows": true, ".arrow": true,
}
