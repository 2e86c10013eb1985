package trace

// A BatchWriter takes events in batches, as a [Recorder] flushes them. Calls
// come from one goroutine at a time.
type BatchWriter interface {
	// WriteBatch writes events. The Aux of a labelled event is an index into
	// labels, as in a [Trace]. WriteBatch keeps neither slice. It returns how
	// many of the first events were written; an error if those are not all, and then the recording is over.
	WriteBatch(events []Event, labels []string) (written int, err error)
	// Close ends the recording.
	Close() error
}
