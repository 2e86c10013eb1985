package main

import "strings"

// A job is one client under one load, in several ways.
type job struct {
	program string // folder of the client
	kind    string // of nothing: which of its programs
	load    string // "", tenfold or idle
	args    string
	env     string
	ways    []string
	rounds  int // at most
}

func (j job) name() string {
	if j.kind != "" {
		return j.kind
	}
	return j.program
}

const (
	ours    = "own,gauge,auto"
	rivals  = "gogc:20,memlimit:512,every:10,tick:10ms,tick:100ms,tick:1s"
	peers   = "watchdog:512,otel:512,automemlimit:512,gogctuner:512,memlimiter:512"
	allWays = "plain,close,late,close+auto," + ours + ",account," + rivals + "," + peers
	fewWays = "plain,close," + ours + "," + rivals
)

type client struct {
	program, requests, workers, tenfold string
	manyRequests                        string // for tenfold
}

// clients with a load that takes a few seconds on two cores of a server.
var clients = []client{
	{"thumb", "30", "4", "40", "80"},
	{"query", "160", "4", "40", "160"},
	{"matrix", "1800", "2", "20", "1800"},
	{"wasm", "400", "2", "20", "400"},
	{"arrow", "300", "2", "20", "300"},
	{"pack", "160", "2", "20", "160"},
	{"lru", "6000", "2", "20", "6000"}, // after all rules; the others were known
}

// plan returns what is measured: every client in all ways, then with ten times as many requests
// at once, then with pauses; and four programs that have nothing to free.
func plan() []job {
	var base, loads []job
	for _, c := range clients {
		all, few := allWays, fewWays
		if c.program == "matrix" { // a cycle takes long: each ten requests, one run takes a minute
			all, few = strings.Replace(all, "every:10,", "", 1), strings.Replace(few, "every:10,", "", 1)
			loads = append(loads, job{program: "matrix", args: "-requests " + c.requests, ways: []string{"every:10"}, rounds: 1})
		}
		base = append(base, job{program: c.program, args: "-requests " + c.requests + " -workers " + c.workers, ways: strings.Split(all, ","), rounds: 5})
		for _, load := range []job{
			{load: "tenfold", args: "-requests " + c.manyRequests + " -workers " + c.tenfold},
			{load: "idle", args: "-idle 400ms -requests " + c.requests + " -workers " + c.workers},
		} {
			load.program, load.ways, load.rounds = c.program, strings.Split(few, ","), 3
			loads = append(loads, load)
		}
	}
	nothing := func(kind, requests, env string, ways ...string) job {
		return job{program: "nothing", kind: kind, args: "-requests " + requests, env: env, ways: ways, rounds: 1}
	}
	some := []string{"plain", "auto", "otel:512", "watchdog:512"}
	base = append(base,
		nothing("cache", "4000", "", "plain"), nothing("cache", "4000", "", "auto"), // long: beside each other
		nothing("held", "150", "EAGERGC_HARD_MEMORY_LIMIT=512MiB", some...),
		nothing("mapped", "300", "", some...),
		nothing("rest", "100", "", "plain", "auto"))
	return append(base, loads...)
}
