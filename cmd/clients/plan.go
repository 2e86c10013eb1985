package main

import "strings"

// ways of every client, in the order of tables: see frame.Ways.
const ways = "plain,memlimit:512,auto,gauge,own,tick:100ms,tick:1s,close"

// A job is one client with a load that takes a few seconds on two cores.
type job struct {
	program  string // folder of the client
	requests string
	workers  string
}

var jobs = []job{
	{"query", "160", "4"},
	{"pack", "160", "2"},
	{"arrow", "300", "2"},
	{"wasm", "400", "2"},
	{"thumb", "24", "4"},
	{"lru", "6000", "2"},
	{"matrix", "1800", "2"},
}

func (j job) args(way string) []string {
	return []string{"-way", way, "-requests", j.requests, "-workers", j.workers}
}

// contains reports whether a list with commas has the name; an empty list has all.
func contains(list, name string) bool {
	return list == "" || strings.Contains(","+list+",", ","+name+",")
}
