// Package governor turns the answers of a policy into orders. It decides when a cycle begins, how
// long callers are held for it, and when a memory rests. It also judges each finished cycle.
//
// A [Governor] only decides. It has no clock, lock, goroutine or log, and calls only its policy. A
// shell reports events with their times: the program allocates, waits or is refused; a cycle
// begins or has settled; a gauge was read; the program was idle for a while. The governor answers
// with an [Order], and the shell carries it out. Package gc is the shell for Go's runtime. Package
// sim has two shells for virtual time, so that a replay follows the same rules as a program.
//
// One cycle runs at a time, whatever the policy answers. Cycles take at most [Caps].Cycles of the
// processor time, and a memory rests while more of them would gain too little: see [Rest]. The limit
// of a soft memory is a goal, and its callers are held by short assists. Callers of other memories
// are held for whole cycles.
//
// Times are on the shell's clock and never go back. Byte counts refer to the memory that the call
// names. One goroutine at a time may use a governor and its memories.
package governor
