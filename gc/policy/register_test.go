package policy

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestEachRuleOfTheDocumentIsKnown: here, or by the import that the error names.
func TestEachRuleOfTheDocumentIsKnown(t *testing.T) {
	file, err := os.ReadFile("POLICIES.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(file), "## Parameters")
	here := 0
	for row := range strings.Lines(table) {
		name, isRow := strings.CutPrefix(row, "| `")
		name, _, _ = strings.Cut(name, "`")
		_, err := Parse(name)
		switch {
		case !isRow:
		case err == nil:
			here++
		case err.Error() != fmt.Sprintf("policy: %s is a rule for studies: import _ %q", name, comparators):
			t.Error(err)
		}
	}
	if here != len(builtin) {
		t.Errorf("POLICIES.md has %d of the %d policies", here, len(builtin))
	}
}

// A mine is a policy of one's own.
type mine struct{ name string }

func (*mine) Decide(Point) Decision { return Decision{Reason: "mine"} }
func (*mine) Observe(Cycle)         {}
func (m *mine) String() string      { return m.name }

func TestRegister(t *testing.T) {
	before := len(registered.rows)
	t.Cleanup(func() { registered.rows = registered.rows[:before] })
	Register("mine-2", "does nothing", func() Policy { return &mine{"mine-2"} })
	s := MustParse("mine-2")
	if a, b := s.New(), s.New(); a == b || a.String() != "mine-2" {
		t.Errorf("%v and %v, want two of mine", a, b)
	}
	var names []string
	for _, info := range List() {
		names = append(names, info.Name)
	}
	all := strings.Join(names, ", ")
	for text, want := range map[string]string{"mine": `unknown policy "mine" (there are ` + all + ")", "mine-2:x=1": `mine-2: unknown parameter "x" (it has none)`} {
		if _, err := Parse(text); err == nil || err.Error() != "policy: "+want {
			t.Errorf("%s: %v", text, err)
		}
	}
	if last := List()[len(List())-1]; last.Name != "mine-2" || last.Doc != "does nothing" {
		t.Errorf("the list ends with %+v", last)
	}
	for _, c := range []struct{ name, doc, is, want string }{
		{"mine-2", "again", "mine-2", "taken"}, {"never", "again", "never", "taken"}, {"Mine", "a capital", "Mine", "no name"}, {"2mine", "a digit first", "2mine", "no name"},
		{"my,own", "a comma", "my,own", "no name"}, {"", "nothing", "", "no name"}, {"other", "another String", "mine", "String"}, {"other", "", "other", "documentation"},
		{"other", "no function", "", "a function"}, {"other", "nil", "nil", "returns nil"},
	} {
		fresh := map[string]func() Policy{"no function": nil, "nil": func() Policy { return nil }}
		if _, ok := fresh[c.doc]; !ok {
			fresh[c.doc] = func() Policy { return &mine{c.is} }
		}
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "policy: Register") || !strings.Contains(text, c.want) {
					t.Errorf("%q (%s): panics with %q, want %q in it", c.name, c.doc, text, c.want)
				}
			}()
			Register(c.name, c.doc, fresh[c.doc])
		}()
	}
}
