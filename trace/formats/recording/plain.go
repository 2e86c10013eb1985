package recording

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Plain returns a text from a file so that it is safe to print. It writes control characters,
// characters that change the direction of writing, and bytes that are not UTF-8 as in a Go string
// (\x1b, \u202e).
func Plain(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		part := text[:n]
		if !strconv.IsPrint(r) || r == utf8.RuneError && n == 1 {
			part = strings.Trim(strconv.Quote(part), `"`)
		}
		b.WriteString(part)
		text = text[n:]
	}
	return b.String()
}
