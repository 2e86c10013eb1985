package trace

// A BatchWriter takes events in batches, as a [Recorder] flushes them. Calls
// come from one goroutine at a time.
type BatchWriter interface {
	// WriteBatch writes events whose labels are numbered by labels as in
	// [Trace]. It keeps neither slice. An error ends the recording.
	WriteBatch(events []Event, labels []string) error
	// Close ends the recording.
	Close() error
}
