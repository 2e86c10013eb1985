package main

import "strings"

// ways of every client, in the order of tables: see frame/way.go.
const ways = "plain,memlimit:512,auto,gauge,own,tick:100ms,tick:1s,close"

// A job is one client with a load that takes a few seconds on two cores.
type job struct {
	program  string // folder of the client
	requests string
	workers  string
}

// A plan is programs and the ways in which each is run. Its runs are in a file of its own.
type plan struct {
	file string
	ways string
	jobs []job
}

var ours = plan{"runs.csv", ways, []job{
	{"query", "160", "4"},
	{"pack", "160", "2"},
	{"arrow", "300", "2"},
	{"wasm", "400", "2"},
	{"thumb", "24", "4"},
	{"lru", "6000", "2"},
	{"matrix", "1800", "2"},
}}

// Strangers are programs around bindings that this project was not tuned on. The last two were held out: they were chosen, written and run once
// all rules were fixed. A ticker of 10 s does nothing in such runs, so that it is as good as plain.
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

func (j job) args(way string) []string {
	return []string{"-way", way, "-requests", j.requests, "-workers", j.workers}
}

// contains reports whether a list with commas has the name; an empty list has all.
func contains(list, name string) bool {
	return list == "" || strings.Contains(","+list+",", ","+name+",")
}
