// Command mutate changes the project's code in small ways, one at a time, and
// asks whether its tests notice. It draws a sample of changes by a seed, so that a
// run can be repeated, and leaves the files as they are (go test -overlay).
//
//	go run ./.ci/mutate -n 20 ./gc ./pool ./trace/... ./sim
//
// All changes of a package are built into one test binary, each behind a switch. A
// run with no change on tells which tests come past which change. Then each change
// is tried on those tests alone, the quick ones first. It counts as killed if one
// of them fails, or does not end. There is a line for each change, and the score of
// each pattern with the 95 % interval for the share of all changes.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var (
	most    = flag.Int("n", 20, "changes in each pattern of packages")
	seed    = flag.Uint64("seed", 1, "of the sample")
	also    = flag.String("also", "", "packages, separated by commas, whose tests are asked about a change that those of its own package do not notice")
	short   = flag.Bool("short", true, "tests leave out what takes long, as go test -short")
	longest = flag.Duration("for", 20*time.Minute, "time for all; what is not tried by then is left out")
)

func main() {
	flag.Parse()
	if err := run(flag.Args(), time.Now().Add(*longest)); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(patterns []string, end time.Time) error {
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, pattern := range patterns {
		all, err := collect(pattern)
		if err != nil {
			return err
		}
		killed, tried := 0, 0
		for _, sample := range draw(all) {
			k, n, err := try(sample, work, end)
			if err != nil {
				return err
			}
			killed, tried = killed+k, tried+n
		}
		from, to := interval(killed, tried)
		fmt.Printf("score   %s: %d of %d killed, %.0f %% (%.0f to %.0f %%), drawn with seed %d from %d changes\n",
			pattern, killed, tried, 100*float64(killed)/float64(max(tried, 1)), 100*from, 100*to, *seed, len(all))
	}
	return nil
}

// draw returns the sample, one list for each package, numbered from 1.
func draw(all []*change) (samples [][]*change) {
	order := rand.New(rand.NewPCG(*seed, uint64(len(all)))).Perm(len(all))
	drawn := order[:min(len(order), *most)]
	slices.Sort(drawn)
	for i, at := range drawn {
		if i == 0 || all[at].dir != all[drawn[i-1]].dir {
			samples = append(samples, nil)
		}
		last := &samples[len(samples)-1]
		*last = append(*last, all[at])
		all[at].number = len(*last)
	}
	return samples
}

// try tries the changes of one package.
func try(sample []*change, work string, end time.Time) (killed, tried int, err error) {
	dirs := []string{sample[0].dir}
	for _, dir := range strings.FieldsFunc(*also, func(r rune) bool { return r == ',' }) {
		if dir = filepath.Clean(dir); dir != dirs[0] {
			dirs = append(dirs, dir)
		}
	}
	suites, err := build(sample, dirs, work)
	if err != nil {
		return 0, 0, err
	}
	for _, c := range sample {
		began := time.Now()
		if began.After(end) {
			fmt.Printf("no time %v\n", c)
			continue
		}
		verdict, by := "invalid", "does not compile"
		if !c.invalid {
			tried++
			if verdict, by = c.verdict(suites); verdict == "killed" {
				killed++
			}
		}
		fmt.Printf("%-7s %v (%.1f s; %s)\n", verdict, c, time.Since(began).Seconds(), by)
	}
	return killed, tried, nil
}

// interval is Wilson's for a share (J. Am. Stat. Assoc. 22, 1927), at 95 %.
func interval(killed, tried int) (from, to float64) {
	if tried == 0 {
		return 0, 1
	}
	const z = 1.96
	n := float64(tried)
	p := float64(killed) / n
	middle := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, (middle-half)/(1+z*z/n)), min(1, (middle+half)/(1+z*z/n))
}

// collect returns the changes of all packages of a pattern.
func collect(pattern string) ([]*change, error) {
	list := exec.Command("go", "list", "-f", "{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}\n{{end}}", pattern)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var all []*change
	for _, path := range strings.Fields(string(out)) {
		name, err := filepath.Rel(here, path)
		if err != nil {
			return nil, err
		}
		changes, err := ofFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	return all, nil
}
