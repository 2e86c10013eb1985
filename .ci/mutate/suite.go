package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A suite is the tests of one package, built with the changes of a package.
type suite struct {
	dir, binary string
	flags       []string
	tests       []test // the quick ones first
}

type test struct {
	name string
	took time.Duration
	sees map[int]bool // the changes that it comes past
}

// build builds the tests of each folder with the changes. Those that do not compile
// become invalid.
func build(sample []*change, dirs []string, work string) (suites []suite, err error) {
	for n, dir := range dirs {
		s := suite{dir: dir, binary: filepath.Join(work, fmt.Sprintf("%d.test", n))}
		if err := s.build(sample, work); err != nil {
			return nil, err
		}
		if err := s.look(work); err != nil {
			return nil, err
		}
		suites = append(suites, s)
	}
	return suites, nil
}

var number = regexp.MustCompile(`\bmutant\w*\((\d+)`)

func (s *suite) build(sample []*change, work string) error {
	for {
		overlay, err := lay(sample, work)
		if err != nil {
			return err
		}
		os.Remove(s.binary)
		out, err := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", overlay, "-o", s.binary, "./"+filepath.ToSlash(s.dir)).CombinedOutput()
		if err == nil {
			return nil
		}
		if !drop(sample, out) {
			return fmt.Errorf("%s: %w\n%s", s.dir, err, out)
		}
	}
}

// drop makes the changes invalid that stand in the lines which a compiler complains of.
func drop(sample []*change, complaints []byte) (any bool) {
	for _, m := range regexp.MustCompile(`(?m)^(\S*changed\S*\.go):(\d+):`).FindAllSubmatch(complaints, -1) {
		text, err := os.ReadFile(string(m[1]))
		if err != nil {
			continue
		}
		line, _ := strconv.Atoi(string(m[2]))
		lines := bytes.Split(text, []byte("\n"))
		for _, n := range number.FindAllSubmatch(lines[line-1], -1) {
			k, _ := strconv.Atoi(string(n[1]))
			any = any || !sample[k-1].invalid
			sample[k-1].invalid = true
		}
	}
	return any
}

// lay writes the changed files, and returns the name of the overlay that puts them
// in the place of the others.
func lay(sample []*change, work string) (overlay string, err error) {
	files := make(map[string][]*change)
	for _, c := range sample {
		if !c.invalid {
			files[c.file] = append(files[c.file], c)
		}
	}
	replace := make(map[string]string)
	write := func(name string, text []byte) error {
		full, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		replace[full] = filepath.Join(work, fmt.Sprintf("changed%d.go", len(replace)))
		return os.WriteFile(replace[full], text, 0o600)
	}
	for name, changes := range files {
		text, err := os.ReadFile(name)
		if err == nil {
			err = write(name, switched(text, changes))
		}
		if err != nil {
			return "", err
		}
	}
	list := exec.Command("go", "list", "-f", "{{.Name}}", "./"+filepath.ToSlash(sample[0].dir))
	name, err := list.Output()
	if err != nil {
		return "", err
	}
	err = write(filepath.Join(sample[0].dir, "mutants.go"), fmt.Appendf(nil, switches, bytes.TrimSpace(name), len(sample)+1))
	text, err2 := json.Marshal(map[string]map[string]string{"Replace": replace})
	overlay = filepath.Join(work, "overlay.json")
	return overlay, errors.Join(err, err2, os.WriteFile(overlay, text, 0o600))
}

// look runs each test by itself, with no change on, to learn what it comes past. A
// test that fails so is left out.
func (s *suite) look(work string) error {
	list, err := s.command(context.Background(), "-test.list", "^(Test|Example|Fuzz)").Output()
	if err != nil {
		return fmt.Errorf("tests of %s: %w", s.dir, err)
	}
	if help, _ := s.command(context.Background(), "-help").CombinedOutput(); bytes.Contains(help, []byte("-rapid.nofailfile")) {
		s.flags = []string{"-rapid.nofailfile", "-rapid.shrinktime", "1ms"} // the file would stay in testdata, and shrinking takes 30 s
	}
	for _, name := range strings.Fields(string(list)) {
		seen := filepath.Join(work, "seen")
		os.Remove(seen)
		began := time.Now()
		if out, ok := s.run([]string{name}, 5*time.Minute, "MUTANT=-1", "MUTANTS_SEEN="+seen); !ok {
			fmt.Printf("left out %s %s, which fails without a change: %s\n", s.dir, name, lastLine(out))
			continue
		}
		t := test{name, time.Since(began), make(map[int]bool)}
		text, _ := os.ReadFile(seen) // there is none if it sees nothing
		for _, word := range strings.Fields(string(text)) {
			n, _ := strconv.Atoi(word)
			t.sees[n] = true
		}
		s.tests = append(s.tests, t)
	}
	slices.SortFunc(s.tests, func(a, b test) int { return int(a.took - b.took) })
	return nil
}

// verdict returns "killed" or "LIVED", and which test killed, or why none did.
func (c *change) verdict(suites []suite) (verdict, by string) {
	asked := 0
	for _, s := range suites {
		var names []string
		var took time.Duration
		try := func() (failed string) {
			if len(names) == 0 {
				return ""
			}
			out, ok := s.run(names, 20*time.Second+5*took, fmt.Sprintf("MUTANT=%d", c.number))
			if ok {
				names, took = nil, 0
				return ""
			}
			if m := regexp.MustCompile(`--- FAIL: (\S+)`).FindSubmatch(out); m != nil {
				return string(m[1])
			}
			return "one of " + strings.Join(names[:min(3, len(names))], ", ") + ": " + lastLine(out)
		}
		for _, t := range s.tests {
			if !t.sees[c.number] {
				continue
			}
			if asked++; took > 0 && took+t.took > time.Second { // a batch
				if by = try(); by != "" {
					return "killed", by
				}
			}
			names, took = append(names, t.name), took+t.took
		}
		if by = try(); by != "" {
			return "killed", by
		}
	}
	return "LIVED", fmt.Sprintf("%d tests come past it", asked)
}

// run runs some tests in the folder of their package.
func (s *suite) run(names []string, limit time.Duration, env ...string) (out []byte, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := s.command(ctx, append(s.flags, fmt.Sprintf("-test.short=%v", *short), "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")...)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		return []byte("no end"), false
	}
	return out, err == nil
}

// command starts the tests with so much memory that a change which wants ever more fails.
func (s *suite) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -d 4194304; exec "$@"`, "sh", s.binary}, args...)...)
	c.Dir = s.dir
	c.WaitDelay = 5 * time.Second
	return c
}

// lastLine returns the last line of a test's output that says something.
func lastLine(out []byte) string {
	for _, line := range slices.Backward(strings.Split(string(out), "\n")) {
		if line = strings.TrimSpace(line); line != "" && line != "FAIL" && !strings.HasPrefix(line, "exit status") {
			return line
		}
	}
	return "no output"
}
