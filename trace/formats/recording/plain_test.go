package recording_test

import (
	"testing"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "gpt2": "gpt2", `a "b" \c`: `a "b" \c`, "größer 日本": "größer 日本",
		"\x1b[31mred": `\x1b[31mred`, "a\nb\r": `a\nb\r`, "\u009b2J": `\u009b2J`, "a\u202eb": `a\u202eb`,
		"\u2028": `\u2028`, "\x00\x7f": `\x00\x7f`, "a\xffb": `a\xffb`, "\ufffd": "\ufffd", "\u2066x": `\u2066x`,
	} {
		if got := recording.Plain(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
