package pressure

import "testing"

func FuzzParseSpace(f *testing.F) {
	for _, seed := range []string{"host", "pinned", "managed", "device0", "device252", "device253", "device01", "device-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseSpace(text); err == nil && s.String() != text {
			t.Fatalf("%q reads as %v", text, s)
		}
	})
}

// FuzzParseStalls: what the kernel writes is trusted, but never so far that it
// could end the program.
func FuzzParseStalls(f *testing.F) {
	f.Add("some avg10=0.00 avg60=1.50 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	f.Add("some avg10=NaN avg60=-1 avg300=1e308 total=-9223372036854775808\n")
	f.Add("full avg10=0.00\n")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parseStalls(text); err != nil && s != 0 {
			t.Fatalf("%q: %v with error %v", text, s, err)
		}
	})
}
