package main

import (
	"slices"
	"strings"
)

// A job is one client under one load, in several ways.
type job struct {
	program string // folder of the client
	load    string // "", tenfold or idle
	args    string
	plan    []times
	after   int // rounds of other jobs that come before its first
}

// times is how often some ways are run.
type times struct {
	rounds int
	ways   string
}

// rounds is how often the job is run.
func (j job) rounds() (most int) {
	for _, t := range j.plan {
		most = max(most, t.rounds)
	}
	return most
}

// ways are those of a round, from 0.
func (j job) ways(round int) (ways []string) {
	for _, t := range j.plan {
		if round < t.rounds {
			ways = append(ways, strings.Split(t.ways, ",")...)
		}
	}
	return ways
}

const (
	ours   = "own,gauge,auto"
	ticks  = "tick:10ms,tick:100ms,tick:1s"
	rivals = "gogc:20,memlimit:512,every:10," + ticks
	// allWays is the order of tables.
	allWays = "plain,close,late,close+auto," + ours + ",account," + rivals
)

type client struct {
	program, requests, workers, tenfold string
	manyRequests                        string // for tenfold
}

// clients with a load that takes a few seconds on two cores of a server.
var clients = []client{
	{"thumb", "24", "4", "40", "60"},
	{"query", "160", "4", "40", "160"},
	{"matrix", "1800", "2", "20", "1800"},
	{"wasm", "400", "2", "20", "400"},
	{"arrow", "300", "2", "20", "300"},
	{"pack", "160", "2", "20", "160"},
	{"lru", "6000", "2", "20", "6000"},
}

// plan returns what is measured: every client in all ways, then with ten times as many requests
// at once, then with pauses.
func plan() []job {
	var jobs []job
	for _, c := range clients {
		some := "late,close+auto,gogc:20"
		if c.program != "matrix" { // there each ten requests are 180 cycles of half a second
			some += ",every:10"
		}
		if slices.Contains([]string{"matrix", "wasm", "arrow"}, c.program) { // elsewhere it does what own does
			some += ",account"
		}
		jobs = append(jobs, job{program: c.program, args: "-requests " + c.requests + " -workers " + c.workers,
			plan: []times{{5, "plain,close," + ours + "," + ticks}, {3, some}, {1, "memlimit:512"}}})
	}
	for _, load := range []string{"tenfold", "idle"} {
		for _, c := range clients {
			j := job{program: c.program, load: load, after: 2, args: "-requests " + c.manyRequests + " -workers " + c.tenfold,
				plan: []times{{3, "plain,close," + ours + ",tick:10ms,tick:100ms"}}}
			if c.program == "matrix" {
				j.plan = []times{{2, "plain,close," + ours}}
			}
			if load == "idle" {
				j.args = "-idle 400ms -requests " + c.requests + " -workers " + c.workers
			}
			jobs = append(jobs, j)
		}
	}
	return jobs
}
