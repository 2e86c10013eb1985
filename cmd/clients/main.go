// Clients runs programs that use real libraries whose memory lies outside the Go
// heap, in each of the ways in which such memory can go back, and writes down what they
// held and how long they took.
//
//	go run . -o ../../results/2026-11-23-clients           measures all, and makes tables and pictures
//	go run . -strangers -o ...                             measures the programs below strangers instead
//	go run . -tables -o ../../results/2026-11-23-clients   makes them again from runs.csv
//	go run . -only query -ways plain,close,auto -rounds 1  prints some runs
//
// Each client is a folder beside this file. Give it two cores of its own (taskset). See plan.go for
// what is run, and frame for the clients' side.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
)

func main() {
	var s settings
	flag.StringVar(&s.out, "o", "", "folder for runs.csv, timeline.csv, tables and pictures; empty prints runs only")
	flag.StringVar(&s.only, "only", "", "clients to run, such as query,arrow; empty is all")
	flag.StringVar(&s.ways, "ways", "", "ways to run, if not those of plan.go")
	others := flag.Bool("strangers", false, "run programs around bindings that this project was not tuned on")
	flag.IntVar(&s.rounds, "rounds", 5, "times that each way is run")
	flag.StringVar(&s.built, "bin", "", "folder with clients that are built already; empty builds them")
	tables := flag.Bool("tables", false, "only make tables and pictures from the runs in the folder")
	flag.Parse()
	ways := s.ways
	if s.plan = ours; *others {
		s.plan = strangers
	}
	s.ways = cmp.Or(ways, s.ways)
	err := error(nil)
	if !*tables {
		err = s.bench()
	}
	if err == nil && s.out != "" {
		err = present(s.out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}
