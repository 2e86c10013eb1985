// Extmem builds programs with a patched Go, whose pacer counts bytes outside the Go heap. It makes
// the patch from the Go that is installed, as an overlay for `go build`, and changes no file of it.
//
//	extmem [-rule low|marked|goal] build [FLAGS] PACKAGE   runs go build with the patched Go
//	extmem ring [-rounds N] [-o FOLDER]                    measures a small program, and simulates it
//	extmem clients [-rounds N] [-only NAMES] -o FOLDER     measures the programs of cmd/clients
//	extmem tables -o FOLDER                                makes tables from the runs in a folder
//
// A program reports its bytes by runtime/debug.AdjustExternalMemory, which the patch adds.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "extmem:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("extmem", flag.ContinueOnError)
	rule := flags.String("rule", "low", "which external `bytes` count as live: "+strings.Join(rules, ", "))
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("want build, ring, clients or tables (see extmem -h)")
	}
	if !slices.Contains(rules, *rule) {
		return fmt.Errorf("no rule %q; there are %s", *rule, strings.Join(rules, ", "))
	}
	verb, rest := flags.Arg(0), flags.Args()[1:]
	if verb == "build" {
		return build(*rule, rest...)
	}
	flags = flag.NewFlagSet("extmem "+verb, flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "number of runs of each kind")
	only := flags.String("only", "", "clients to run, such as query,numbers; empty is all")
	out := flags.String("o", "", "`folder` for runs and tables")
	if err := flags.Parse(rest); err != nil {
		return err
	}
	switch verb {
	case "ring":
		return measureRing(*out, *rounds, stdout)
	case "clients":
		if err := measureClients(*out, *only, *rounds); err != nil {
			return err
		}
		return clientTables(*out, stdout)
	case "tables":
		return clientTables(*out, stdout)
	}
	return fmt.Errorf("no command %q", verb)
}

// build runs go build with the patched Go.
func build(rule string, args ...string) error {
	overlay, remove, err := temporary(rule, "")
	if err != nil {
		return err
	}
	defer remove()
	cmd := exec.Command("go", append([]string{"build", "-overlay", overlay}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// temporary makes an overlay in a folder of its own. The caller calls remove at the end.
func temporary(rule, clients string) (overlay string, remove func(), err error) {
	root, err := goroot()
	if err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp("", "extmem")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(folder) }
	if overlay, err = patch(root, rule, clients, folder); err != nil {
		remove()
		return "", nil, err
	}
	return overlay, remove, nil
}

// checkout returns the folder of the checkout.
func checkout() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/eagergc/eagergc").Output()
	if err != nil {
		return "", fmt.Errorf("run extmem in a checkout of eagergc: %w", err)
	}
	return filepath.Clean(strings.TrimSpace(string(out))), nil
}
