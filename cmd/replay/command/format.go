package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// formatFlag adds --format, whose first value is the default, and --json, which is short for
// --format json. It refuses other values before the command runs.
func formatFlag(cmd *cobra.Command, format *string, about string, names ...string) {
	f := cmd.Flags()
	f.StringVar(format, "format", names[0], "what to print: "+orList(names)+about)
	if slices.Contains(names, "json") {
		f.BoolFunc("json", "short for --format json", func(string) error { *format = "json"; return nil })
	}
	cmd.PreRunE = func(*cobra.Command, []string) error { return oneOf("format", *format, names) }
}

// words explains the words of the tables, for the help of the commands that print them.
const words = `

Words:
  limit          largest memory; 1.5x is 1.5 times the peak reachable bytes, which is the
                 most that the program used at once
  cycle          one garbage collection, of the length --cycle
  refusal        an allocation that does not fit below the limit: the program is held
                 while all garbage is freed, for the time --ladder
  exposed pause  time that the program was held, without the time in which it waited
                 for its device anyway
  time lost      exposed pause, the slowdown beside cycles if the machine has one, and 5%
                 of the time of the cycles, as a share of the recorded time
  optimum        best schedule of cycles that is found with the whole recording known`

const many = 1 << 30

// files bounds the number of arguments of a command.
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

// oneOf refuses a text that is not in names.
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

// suggestion suggests the nearest name; it is empty if no name is near.
func suggestion(word string, names []string) string {
	if near := nearest(word, names); near != "" {
		return fmt.Sprintf(", did you mean %s?", near)
	}
	return ""
}

// nearest returns the name with the least edit distance to word, or "" if more than three letters or
// half of them differ. Cobra computes the distance.
func nearest(word string, names []string) string {
	known := new(cobra.Command)
	for _, name := range names {
		known.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	for known.SuggestionsMinimumDistance = 1; known.SuggestionsMinimumDistance <= min(3, (len(word)+1)/2); known.SuggestionsMinimumDistance++ {
		if near := known.SuggestionsFor(word); len(near) > 0 {
			return near[0]
		}
	}
	return ""
}

// flagError suggests a flag in place of an unknown one, and describes the values of a flag.
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

// valuesOf describes the values of a type of flags. The errors of strconv only describe failures.
var valuesOf = map[string]string{
	"duration": "a duration such as 10s or 200ms",
	"int":      "a whole number",
	"int64":    "a whole number",
	"uint64":   "a whole number of 0 or more",
	"float64":  "a number such as 0.5",
}
