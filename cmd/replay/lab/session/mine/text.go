// Package mine has the policy that the page begins with, where a reader writes one.
// Its file is what the page shows and runs.
package mine

import _ "embed" // of Text

// Text is mine.go.
//
//go:embed mine.go
var Text string
