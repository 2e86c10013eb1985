package sim

import "testing"

func FuzzParseLadder(f *testing.F) {
	for _, seed := range []string{"2x", "20ms", "0x", "-0x", "1e6x", "NaNx", "1h3ns", "9223372036854775807ns"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLadder(text)
		if err != nil {
			return
		}
		if l.Of(1) < 0 {
			t.Fatalf("%q takes %v", text, l.Of(1))
		}
		if again, err := ParseLadder(l.String()); err != nil || again != l {
			t.Fatalf("%q prints as %q, which reads as %v, %v", text, l, again, err)
		}
	})
}
