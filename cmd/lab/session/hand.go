package session

import "github.com/eagergc/eagergc/gc"

// A hand is a policy that was written in the page.
type hand struct {
	name  string
	fresh func() gc.Policy
}
