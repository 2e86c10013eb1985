package trace

// A BatchWriter takes events in batches, as a [Recorder] flushes them. Calls
// come from one goroutine at a time.
type BatchWriter interface {
	// WriteBatch writes events. The Aux of a labelled event is an index into
	// labels, as in a [Trace]. WriteBatch keeps neither slice. After an error the
	// recording is over.
	WriteBatch(events []Event, labels []string) error
	// Close ends the recording.
	Close() error
}
