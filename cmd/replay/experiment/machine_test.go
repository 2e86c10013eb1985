package experiment

import (
	"strings"
	"testing"
)

func TestReadMachine(t *testing.T) {
	for text, want := range map[string]string{
		`{"about": "x", "mark": {"base_ns": 5}, "noise": [0.5, 1]}`: "",
		`{"start_ns": 5} {}`:           "byte 16: more than one object",
		`{"start_ns": -5}`:             "start_ns: negative: -5",
		`{"mark": {"per_gib_ns": -5}}`: "per_gib_ns",
		`{"noise": [2, 1]}`:            "the least first",
		`{"bass_ns": 5}`:               "unknown field",
		`{"start_ns": `:                "byte ",
	} {
		m, err := ReadMachine(strings.NewReader(text))
		switch {
		case want == "" && (err != nil || m.Mark.Base != 5):
			t.Errorf("%s is %+v, %v", text, m, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s gives %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{`{"after":[{"at_ns":0,"factor":1}]}`, `{"after":[{"at_ns":2,"factor":1},{"at_ns":2,"factor":1}]}`, `{"after":[{"at_ns":2,"factor":-1}]}`} {
		if _, err := ReadMachine(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "after") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{`{"share":1.1,"length_ns":[1,2]}`, `{"share":0.1,"length_ns":[1]}`, `{"share":0.1,"length_ns":[2,1]}`, `{"share":-1}`} {
		if _, err := ReadMachine(strings.NewReader(`{"stall":` + text + `}`)); err == nil || !strings.Contains(err.Error(), "stall") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
