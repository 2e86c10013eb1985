package recording

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Plain returns text as it may be shown: characters that steer a terminal or turn
// the direction of writing, ends of lines, and bytes that are no UTF-8 are written
// as in a Go string (\x1b, \u202e, \n). A text from a file may hold any of them.
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
