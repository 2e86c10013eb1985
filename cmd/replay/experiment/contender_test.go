package experiment

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseContenders(t *testing.T) {
	cs, err := ParseContenders("never, threshold:0.8,optimum-blocking")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range cs {
		names = append(names, c.String())
	}
	if want := []string{"never", "threshold:0.8", "optimum-blocking"}; !reflect.DeepEqual(names, want) {
		t.Errorf("got %q", names)
	}
	if _, err := ParseContender("optimum-blokcing"); err == nil || !strings.Contains(err.Error(), "optimum-blocking") {
		t.Errorf("a misspelt optimum gives %v", err)
	}
}

func FuzzParseContenders(f *testing.F) {
	for _, seed := range []string{"never,cudajl", "optimum-overlap", "threshold:0.5,overlap=true,random", "pacer:share=0.05,,", ","} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseContenders(text)
		if err != nil {
			return
		}
		for _, c := range all {
			if again, err := ParseContender(c.String()); err != nil || again.String() != c.String() {
				t.Fatalf("%q: %v prints as %q, which reads as %v, %v", text, c, c.String(), again, err)
			}
		}
	})
}
