package pressure

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
)

// Env has parse read what a variable of the environment says, without spaces around it, unless that is empty. One that
// cannot be read is said once, in slog's default log, and counts as not set; it takes no other with it. It reports
// whether the variable is set. All variables of this project are read so.
func Env(name string, parse func(text string) error) (set bool) {
	text := strings.TrimSpace(os.Getenv(name))
	if text == "" {
		return false
	}
	err := parse(text)
	if err != nil {
		why := fmt.Sprintf("%s=%q cannot be read, and counts as not set: %v", name, os.Getenv(name), err)
		if _, before := said.LoadOrStore(why, nil); !before {
			slog.Warn("eagergc: " + why)
		}
	}
	return err == nil
}

var said sync.Map // texts of warnings

// EnvChoice returns which of some words a variable says, whatever their case; the first one if it says nothing. The words
// on, true, yes and 1 are one, and so are off, false, no, 0 and none.
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

// EnvLimit is the limit of a space that the environment sets, in bytes: the hard one before the soft one, and at most
// total, the bytes of the space, where those are known (0: they are not). Total is called only for a variable that is
// set. Set is false if none is; a limit of 0 bytes that is set means that there is to be none.
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

// OrFromEnv returns l, with the limits of the environment where l has none. Those are what
// EAGERGC_DEVICE0_HARD_MEMORY_LIMIT, EAGERGC_PINNED_SOFT_MEMORY_LIMIT and so on say of one space, or else what
// EAGERGC_HARD_MEMORY_LIMIT and EAGERGC_SOFT_MEMORY_LIMIT say of every device; host and pinned memory have limits of their
// own or none. "none" says that there is none, whatever the general one says, and a number without a unit is bytes. Obey
// turns such a limit into the one that holds, or says why it cannot be one: see [Env].
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

const (
	envPrefix = "EAGERGC_"
	envSoft   = "SOFT_MEMORY_LIMIT"
	envHard   = "HARD_MEMORY_LIMIT"
)

// envLimit returns the limit of a kind that the first variable sets which can be obeyed.
func envLimit(space Space, kind string, obey func(Limit) (Limit, error)) (l Limit, set bool) {
	names := []string{envPrefix + strings.ToUpper(space.String()) + "_" + kind, envPrefix + kind}
	if space == Host || space == Pinned {
		names = names[:1]
	}
	for _, name := range names {
		set = Env(name, func(text string) (err error) {
			if strings.Trim(text, "0123456789") == "" {
				text += "B"
			}
			var read Limit
			if read, err = ParseLimit(text); err == nil {
				read, err = obey(read)
			}
			if err == nil {
				l = read
			}
			return err
		})
		if set {
			break
		}
	}
	return l, set
}
