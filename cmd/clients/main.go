// Clients runs programs that use real libraries whose memory lies outside the Go
// heap, in each of the ways in which such memory can go back, one after the other,
// and prints what they held and how long they took.
//
//	go run . -o DIR [-ways plain,close,auto] [-rounds 3] matrix thumb ...
//
// Each client is a folder beside this file. A round runs every way once, so that what
// else the machine does meets all of them. See frame for the clients' side.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	out := flag.String("o", "", "folder for runs.csv, timeline.csv and table.md; empty prints the table only")
	ways := flag.String("ways", "plain,close,gogc:20,memlimit:512,every:10,tick:10ms,tick:100ms,tick:1s,own,gauge,auto", "ways to compare")
	rounds := flag.Int("rounds", 3, "times that each way is run")
	tags := flag.String("tags", "", "build tags, such as peers")
	built := flag.String("bin", "", "folder with clients that are built already; empty builds them")
	args := flag.String("args", "", "further flags of the clients, such as '-workers 40 -requests 600'")
	flag.Parse()
	if err := bench(flag.Args(), strings.Split(*ways, ","), *rounds, *out, *tags, *built, strings.Fields(*args)); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func bench(clients, ways []string, rounds int, out, tags, built string, args []string) error {
	dir, err := os.MkdirTemp("", "clients")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var all results
	for _, client := range clients {
		program := filepath.Join(built, client)
		if built == "" {
			program = filepath.Join(dir, client)
			if err := build(program, client, tags); err != nil {
				return err
			}
		}
		for round := range rounds {
			for _, way := range ways {
				r, err := measure(program, way, args)
				if err != nil {
					return fmt.Errorf("%s, way %s: %w", client, way, err)
				}
				if r == nil {
					continue // this client has no such way
				}
				fmt.Fprintf(os.Stderr, "%s %d %-16s %5.0f %5.0f MiB %6.2f s %5.2f s of CPU, %d cycles, p50 %.1f p99 %.1f ms\n", client, round, way, r.mean, r.peak, r.Seconds, r.CPU, r.Cycles, r.P50, r.P99)
				r.Round = round
				all = append(all, *r)
			}
			if out == "" {
				continue
			}
			if err := all.write(out); err != nil { // now: the next round may be stopped
				return err
			}
		}
	}
	all.table(os.Stdout)
	return nil
}
