// Clients measures programs that use real libraries whose memory lies outside the Go heap. It runs
// each program in each of the ways in which such memory can be freed. It records the memory that
// the program held and the time that it took.
//
//	go run . -o ../../results/2026-11-23-clients           measures all; makes tables and a picture
//	go run . -strangers -o ...                             measures those below strangers instead
//	go run . -programs bundle -o ...                       measures whole programs of others
//	go run . -tables -o ../../results/2026-11-23-clients   makes tables and the picture only
//	go run . -only query -ways plain,close,auto -rounds 1  prints some runs
//
// Each client is a folder beside this file. Reserve two cores for it (taskset). Package frame is
// the part that all clients share.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A job is one client with a load that takes a few seconds on two cores.
type job struct {
	program  string // folder of the client
	requests string
	workers  string
}

// A plan is programs and the ways in which each runs. Its runs have a file of their own.
type plan struct {
	file string
	ways string // in the order of tables; see frame/way.go
	jobs []job
}

var ours = plan{"runs.csv", "plain,memlimit:512,auto,gauge,own,tick:100ms,tick:1s,close", []job{
	{"query", "160", "4"},
	{"pack", "160", "2"},
	{"arrow", "300", "2"},
	{"wasm", "400", "2"},
	{"lru", "6000", "2"},
	{"matrix", "1800", "2"},
}}

// Strangers are programs around bindings that this project was not tuned on. The last two were held
// out: they were chosen, written and run after all rules had been fixed. A ticker of 10 s has no
// effect in such short runs.
var strangers = plan{"strangers.csv", "plain,auto,close,own,tick:10ms,tick:100ms,tick:1s", []job{
	{"strangers/roaring", "300", "2"},
	{"strangers/geometry", "1200", "2"},
	{"strangers/surfaces", "120", "2"},
	{"strangers/wasmer", "600", "2"},
	{"strangers/wasmtime", "600", "2"},
	{"strangers/git", "800", "2"},
	{"strangers/trees", "200", "2"},
	{"strangers/numbers", "600", "2"},
	{"pictures", "120", "2"},
}}

func (j job) name() string { return filepath.Base(j.program) }

func main() {
	out := flag.String("o", "", "folder for runs.csv, timeline.csv, tables and pictures; empty prints runs only")
	only := flag.String("only", "", "clients to run, such as query,arrow; empty is all")
	ways := flag.String("ways", "", "ways to run, in place of the plan's; with -programs, WAY@PROGRAM is one for that program only")
	others := flag.Bool("strangers", false, "run programs around bindings that this project was not tuned on")
	bundle := flag.String("programs", "", "folder with bin/PROGRAM-WAY, lib and images: run its programs side by side, under a load from outside")
	warm := flag.Duration("warm", 10*time.Second, "with -programs: time under load before the measurement")
	length := flag.Duration("time", 45*time.Second, "with -programs: time of the measurement")
	windows := flag.Int("windows", 1, "with -programs: parts of the measurement, each a row of its own")
	load := flag.Float64("load", 1, "with -programs: multiple of the known rates of requests, which are about 60 % of what two cores of an Intel Xeon can serve")
	wrap := flag.String("wrap", "", "with -programs: command that runs a program, such as \"systemd-run --scope -p MemoryMax=300M\"")
	rounds := flag.Int("rounds", 5, "number of runs of each way")
	tables := flag.Bool("tables", false, "only make tables and pictures from the runs in the folder")
	flag.Parse()
	p := ours
	if *others {
		p = strangers
	}
	p.ways = cmp.Or(*ways, p.ways)
	left := func(name string) bool { return *only != "" && !slices.Contains(strings.Split(*only, ","), name) }
	p.jobs = slices.DeleteFunc(p.jobs, func(j job) bool { return left(j.name()) })
	for i := range wholes {
		wholes[i].ways = wholes[i].choose(cmp.Or(*ways, wholes[i].ways))
		wholes[i].rate *= *load
	}
	wholes = slices.DeleteFunc(wholes, func(p program) bool { return left(p.name) || p.ways == "" })
	err := error(nil)
	switch {
	case *tables:
	case *bundle != "":
		err = bed{*bundle, *out, *warm, *length, max(1, *windows), *wrap}.bench(wholes, *rounds)
	default:
		err = p.bench(*out, *rounds)
	}
	if err == nil && *out != "" {
		err = present(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// bench builds the clients and runs every way of every client, round after round. So other load on
// the machine affects all ways alike. A failure does not end the other runs.
func (p plan) bench(out string, rounds int) error {
	dir, err := os.MkdirTemp("", "clients")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, j := range p.jobs {
		if err := build(filepath.Join(dir, j.name()), j.program); err != nil {
			return fmt.Errorf("%s: %w", j.program, err)
		}
	}
	var all runs
	var failed []error
	for round := range rounds {
		for _, j := range p.jobs {
			for way := range strings.SplitSeq(p.ways, ",") {
				r, err := measure(filepath.Join(dir, j.name()), way, j)
				if errors.Is(err, errNoWay) {
					continue
				}
				if err != nil {
					failed = append(failed, fmt.Errorf("%s, way %s: %w", j.program, way, err))
					continue
				}
				if r.round = round; round > 0 {
					r.timeline = nil // the picture is that of the first round
				}
				all = append(all, r)
				r.print()
			}
			if out == "" {
				continue
			}
			if err := all.write(out, p.file); err != nil { // now, because a later run may be interrupted
				return err
			}
		}
	}
	return errors.Join(failed...)
}
