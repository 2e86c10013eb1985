package torchsnap

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
)

// At most so many texts are kept, and none that is longer than the bound.
func TestTextBounds(t *testing.T) {
	m := newMachine(bytes.NewReader(nil), nil, nil)
	if v := m.intern([]byte(strings.Repeat("x", maxText))); v.n == textLost {
		t.Error("a text of the longest length is not kept")
	}
	if v := m.intern([]byte(strings.Repeat("x", maxText+1))); v.n != textLost {
		t.Error("a text that is too long is kept")
	}
	for i := range maxTexts + 10 {
		m.intern([]byte(strconv.Itoa(i)))
	}
	if len(m.texts) != maxTexts || len(m.index) != maxTexts {
		t.Errorf("%d texts are kept, %d in the index; want %d", len(m.texts), len(m.index), maxTexts)
	}
	if v := m.intern([]byte("alloc")); v.n == textLost {
		t.Error("a word that matters is lost")
	}
}

// A free_completed after free_requested were recorded says nothing of an address
// that is not known.
func TestCompletedOfUnknown(t *testing.T) {
	tr := mustRead(t, pickled(snap(nil,
		entryOf("free_completed", 4096, 512, 10),
		entryOf("alloc", 8192, 1024, 20),
		entryOf("free_completed", 8192, 1024, 30),
		entryOf("alloc", 8192, 1024, 40),
		entryOf("free_requested", 8192, 1024, 50),
		entryOf("free_completed", 8192, 1024, 60),
		entryOf("free_completed", 12288, 1024, 70),
	)))
	if got := tr.Meta["live_before_objects"]; got != "0" {
		t.Errorf("%s objects were live before", got)
	}
}

// A string of protocol 0 has quotes of one sort around it.
func TestQuotes(t *testing.T) {
	for text, ok := range map[string]bool{"'a'": true, `"a"`: true, `'a"`: false, "xax": false, "'": false} {
		m := newMachine(strings.NewReader("S"+text+"\n0."), nil, nil)
		err := m.execute()
		if got := err != nil && !strings.Contains(err.Error(), "without quotes"); got != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
