package view

import "github.com/eagergc/eagergc/pressure"

// plural writes n of something.
func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return pressure.Count(n) + " " + what
}
