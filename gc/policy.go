package gc

import "github.com/eagergc/eagergc/gc/policy"

// What a collector and its policy tell each other. See package [policy].
type (
	// A Policy decides whether to collect.
	Policy = policy.Policy
	// A Point is the situation that a policy decides on.
	Point = policy.Point
	// A Decision is its answer.
	Decision = policy.Decision
	// A Cycle reports a collection that has ended.
	Cycle = policy.Cycle
	// An Action is what a policy asks for.
	Action = policy.Action
	// A Trigger says who asked for a cycle.
	Trigger = policy.Trigger
	// A Spec is a checked text form of a policy.
	Spec = policy.Spec
)

// The actions.
const (
	Skip    = policy.Skip
	Overlap = policy.Overlap
	Block   = policy.Block
)

// Where a policy is asked.
const (
	Allocation = policy.Allocation
	Sync       = policy.Sync
)

// Who asks for cycles.
const (
	TriggerPolicy   = policy.TriggerPolicy
	TriggerRefusal  = policy.TriggerRefusal
	TriggerNatural  = policy.TriggerNatural
	TriggerExplicit = policy.TriggerExplicit
)

const (
	actions  = Block + 1
	triggers = TriggerExplicit + 1
)

// Parse reads the text form of a policy: see [policy.Parse].
func Parse(text string) (Spec, error) { return policy.Parse(text) }

// MustParse is [Parse] for texts known to be good; it panics on others.
func MustParse(text string) Spec { return policy.MustParse(text) }
