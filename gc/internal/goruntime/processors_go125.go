//go:build go1.25

package goruntime

import "runtime"

// setDefault makes the runtime choose GOMAXPROCS, and follow the limits of the system.
func setDefault() { runtime.SetDefaultGOMAXPROCS() }
