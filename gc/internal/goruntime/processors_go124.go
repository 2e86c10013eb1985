//go:build !go1.25

package goruntime

// setDefault does nothing. Before Go 1.25 the runtime does not change GOMAXPROCS.
func setDefault() {}
