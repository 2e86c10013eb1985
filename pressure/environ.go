package pressure

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Env calls parse with the value of an environment variable, without spaces around it, and reports
// whether the variable is set. An empty value counts as not set. If parse fails, Env warns once in
// slog's default log, and the variable counts as not set; other variables still count. All
// variables of this project are read by Env.
func Env(name string, parse func(text string) error) (set bool) {
	text := strings.TrimSpace(os.Getenv(name))
	if text == "" {
		return false
	}
	err := parse(text)
	if err != nil {
		warnOnce("%s=%q cannot be read, and counts as not set: %v", name, os.Getenv(name), err)
	}
	return err == nil
}

func warnOnce(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if _, before := said.LoadOrStore(text, nil); !before {
		slog.Warn("eagergc: " + text)
	}
}

var said sync.Map // texts of warnings

// EnvChoice returns the one of the words that a variable holds, in any case, or the first word if
// it holds none of them. The words on, true, yes and 1 mean the same, and so do off, false, no, 0
// and none.
func EnvChoice(name string, words ...string) string {
	choice := words[0]
	Env(name, func(text string) error {
		text = strings.ToLower(text)
		for _, same := range [][]string{{"on", "true", "yes", "1"}, {"off", "false", "no", "0", "none"}} {
			if i := slices.IndexFunc(words, func(word string) bool { return slices.Contains(same, word) }); i >= 0 && slices.Contains(same, text) {
				text = words[i]
			}
		}
		if !slices.Contains(words, text) {
			return errors.New("want " + strings.Join(words, ", "))
		}
		choice = text
		return nil
	})
	return choice
}

// EnvLimit returns the limit that the environment sets for a space, in bytes. The hard limit goes
// before the soft one. Total returns the bytes of the space, or 0 if they are not known. It bounds
// the limit, and is called only if a variable is set. Set is false if no variable is. A limit of 0
// bytes with set means no limit.
func EnvLimit(space Space, total func() int64) (bytes int64, set bool) {
	for _, kind := range []string{envHard, envSoft} {
		l, set := envLimit(space, kind, func(l Limit) (Limit, error) {
			all := total()
			bytes, err := l.Of(all)
			if all > 0 {
				bytes = min(bytes, all)
			}
			return Limit{Bytes: bytes}, err
		})
		if set {
			return l.Bytes, true
		}
	}
	return 0, false
}

// OrFromEnv returns l, with the limits of the environment where l has none. A variable for one
// space, such as EAGERGC_DEVICE0_HARD_MEMORY_LIMIT or EAGERGC_PINNED_SOFT_MEMORY_LIMIT, goes before
// the general EAGERGC_HARD_MEMORY_LIMIT and EAGERGC_SOFT_MEMORY_LIMIT. The general ones do not hold
// for host and pinned memory. The value "none" means no limit, whatever the general variable says;
// for other values see [ParseLimit]. Obey turns a limit into the one that holds, or returns why it
// cannot hold: see [Env].
func (l Limits) OrFromEnv(space Space, obey func(Limits) (Limits, error)) Limits {
	if l.Soft == (Limit{}) {
		l.Soft, _ = envLimit(space, envSoft, func(soft Limit) (Limit, error) {
			all, err := obey(Limits{Soft: soft})
			return all.Soft, err
		})
	}
	if l.Hard == (Limit{}) {
		l.Hard, _ = envLimit(space, envHard, func(hard Limit) (Limit, error) {
			all, err := obey(Limits{Hard: hard})
			return all.Hard, err
		})
	}
	return l
}

// UnknownVariables returns the names in environ, in the form of [os.Environ], that begin with
// EAGERGC and that no package of this project reads. Variables with an empty value do not count,
// nor do names that begin with EAGERGC_TEST. The caller owns the result.
func UnknownVariables(environ []string) (names []string) {
	for _, setting := range environ {
		name, value, _ := strings.Cut(setting, "=")
		ours := strings.HasPrefix(name, "EAGERGC") && !strings.HasPrefix(name, "EAGERGC_TEST")
		if ours && strings.TrimSpace(value) != "" && !isVariable(name) {
			names = append(names, name)
		}
	}
	return names
}

// SetVariables returns the entries NAME=value of environ, which has the form of [os.Environ], whose
// variables a package of this project reads. Empty values do not count. The result is the caller's.
func SetVariables(environ []string) (set []string) {
	for _, setting := range environ {
		if name, value, _ := strings.Cut(setting, "="); strings.TrimSpace(value) != "" && isVariable(name) {
			set = append(set, setting)
		}
	}
	return set
}

// A Variable describes a variable of the environment that a package of this project reads.
type Variable struct{ Name, Values, About string }

// Variables returns all of them. The variables for the limits of one space are two entries whose
// names have SPACE in place of the space. The result is the caller's.
func Variables() []Variable { return slices.Clone(variables[:]) }

const limitValues = "8GiB, 80% or none"

var variables = [...]Variable{
	{"EAGERGC", "on, off, stress", "the import gc/auto: off turns it off; stress runs one cycle after another, for tests"},
	{"EAGERGC_POLICY", "a policy", "the policy of every collector, such as threshold:0.8; it overrides the one that the program names"},
	{envPrefix + envHard, limitValues, "the hard limit of each device: an allocation above it is refused"},
	{envPrefix + envSoft, limitValues, "the soft limit of each device: caches are released above it"},
	{envPrefix + "SPACE_" + envHard, limitValues, "the hard limit of one space: HOST, PINNED, MANAGED, DEVICE0 ... in place of SPACE"},
	{envPrefix + "SPACE_" + envSoft, limitValues, "the soft limit of one space, likewise"},
	{"EAGERGC_DEFAULT_MEMORY", "device, managed, pinned", "the memory of the arrays of cuda.Default (unified is managed, host is pinned)"},
	{"EAGERGC_MEMORY_POOL", "on, none", "none: the pools of cuda.Default keep no free memory"},
	{"EAGERGC_TRIM", "on, off", "off: free memory of glibc is not given back to the system after cycles"},
	{"EAGERGC_STRICT", "off, on", "on: a misuse panics where it is found, and no panic is contained; for tests"},
}

func isVariable(name string) bool {
	for _, kind := range []string{envSoft, envHard} {
		if space, ok := strings.CutSuffix(strings.TrimPrefix(name, envPrefix), "_"+kind); ok {
			_, err := ParseSpace(strings.ToLower(space))
			return err == nil && strings.ToUpper(space) == space
		}
	}
	return slices.ContainsFunc(variables[:], func(v Variable) bool { return v.Name == name })
}

const (
	envPrefix = "EAGERGC_"
	envSoft   = "SOFT_MEMORY_LIMIT"
	envHard   = "HARD_MEMORY_LIMIT"
)

// leastSure is the least limit, in bytes, that may lack its unit without a warning.
const leastSure = 1 << 20

// envLimit returns the limit of a kind from the first variable that sets one which can be obeyed.
func envLimit(space Space, kind string, obey func(Limit) (Limit, error)) (l Limit, set bool) {
	names := []string{envPrefix + strings.ToUpper(space.String()) + "_" + kind, envPrefix + kind}
	if space == Host || space == Pinned {
		names = names[:1]
	}
	for _, name := range names {
		set = Env(name, func(text string) (err error) {
			var read Limit
			if read, err = ParseLimit(text); err == nil {
				read, err = obey(read)
			}
			if err != nil {
				return err
			}
			l = read
			if _, plain := strconv.ParseInt(text, 10, 64); plain == nil && l.Bytes > 0 && l.Bytes < leastSure {
				warnOnce("%s=%s is a limit of %[2]s bytes; for MiB write %[2]sMiB", name, text)
			}
			return nil
		})
		if set {
			break
		}
	}
	return l, set
}
