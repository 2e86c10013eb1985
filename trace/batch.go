package trace

// A BatchWriter takes events in batches, as a [Recorder] flushes them. Calls
// come from one goroutine at a time.
type BatchWriter interface {
	// WriteBatch writes events. The Aux of a labelled event is an index into
	// labels, as in a [Trace]. WriteBatch keeps neither slice. After an error the
	// recording is over; a [PartError] says that some of the events were written.
	WriteBatch(events []Event, labels []string) error
	// Close ends the recording.
	Close() error
}

// A PartError is the error of a batch of which only the first events were written.
type PartError struct {
	Written int // events
	Err     error
}

func (e *PartError) Error() string { return e.Err.Error() }
func (e *PartError) Unwrap() error { return e.Err }
