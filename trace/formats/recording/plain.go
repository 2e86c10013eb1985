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
	for i, r := range text {
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			return text[:i] + escaped(text[i:])
		}
	}
	return text
}

func escaped(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if part := text[:n]; strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(part)
		} else {
			quoted := strconv.Quote(part)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[n:]
	}
	return b.String()
}
