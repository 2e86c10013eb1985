package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// formatFlag adds --format, whose first value is the default, and --json as short
// for its most frequent use. Other values are refused before the command runs.
func formatFlag(cmd *cobra.Command, format *string, about string, names ...string) {
	f := cmd.Flags()
	f.StringVar(format, "format", names[0], "what to print: "+orList(names)+about)
	if slices.Contains(names, "json") {
		f.BoolFunc("json", "short for --format json", func(string) error { *format = "json"; return nil })
	}
	cmd.PreRunE = func(*cobra.Command, []string) error { return oneOf("format", *format, names) }
}

// words are those of the tables, for the help of the commands that print them.
const words = `

Words:
  limit          the most memory that may be held; 1.5x is a factor of the peak
                 reachable bytes: the most that the program had in use at once
  cycle          one garbage collection; --cycle says how long it takes
  refusal        an allocation that does not fit below the limit: the program is then
                 held while all garbage is freed; --ladder says for how long
  exposed pause  how long the program was held, beyond the time for which it waited
                 for its device anyway
  time lost      exposed pause and 5 % of the cycles' own time, as a share of the
                 recorded time
  optimum        the best schedule of cycles that can be found knowing the whole recording`

const many = 1 << 30

// files says how many arguments a command takes.
func files(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > most && most == 0:
			return fmt.Errorf("%s takes no file, got %s", cmd.Name(), strings.Join(args, " "))
		case len(args) < least || len(args) > most:
			example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
			return fmt.Errorf("%s: want %s, got %d. For example: %s", cmd.Name(), what, len(args), example)
		}
		return nil
	}
}

// oneOf refuses a text that is none of names.
func oneOf(what, text string, names []string) error {
	switch {
	case slices.Contains(names, text):
		return nil
	case text == "":
		return fmt.Errorf("no %s: want %s", what, orList(names))
	}
	return fmt.Errorf("unknown %s %q%s (want %s)", what, text, suggestion(text, names), orList(names))
}

func orList[T ~string](names []T) (list string) {
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			list += " or "
		case i > 0:
			list += ", "
		}
		list += string(name)
	}
	return list
}

// suggestion asks whether the nearest name was meant; empty if none is near.
func suggestion(word string, names []string) string {
	if near := nearest(word, names); near != "" {
		return fmt.Sprintf(", did you mean %s?", near)
	}
	return ""
}

// nearest returns the name with the least edit distance to word, or nothing if
// more than half of the letters would have to change.
func nearest(word string, names []string) string {
	near, least := "", (max(len(word), 2)+1)/2+1
	for _, name := range names {
		if d := editDistance(word, name); d < least {
			near, least = name, d
		}
	}
	return near
}

// editDistance counts the insertions, deletions and substitutions of bytes
// that turn a into b (Levenshtein), in len(b) words of memory.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// flagError says what to write in place of a flag that there is not, or of a value that it does not take.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &value):
		f := value.GetFlag()
		if want := valuesOf[f.Value.Type()]; want != "" {
			return fmt.Errorf("--%s %s: want %s", f.Name, value.GetValue(), want)
		}
		return fmt.Errorf("--%s: %w", f.Name, value.Unwrap())
	case !errors.As(err, &unknown):
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest(unknown.GetSpecifiedName(), names); near != "" && len(unknown.GetSpecifiedName()) > 1 {
		return fmt.Errorf("%w, did you mean --%s?", err, near)
	}
	return fmt.Errorf("%w (%s --help lists them)", err, cmd.CommandPath())
}

// valuesOf says what flags of a type take, where the package strconv would say how it failed.
var valuesOf = map[string]string{
	"duration": "a duration such as 10s or 200ms",
	"int":      "a whole number",
	"int64":    "a whole number",
	"uint64":   "a whole number of 0 or more",
	"float64":  "a number such as 0.5",
}
