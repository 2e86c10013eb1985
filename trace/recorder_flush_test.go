package trace

import (
	"runtime"
	"testing"
	"time"
)

// TestFlushTakesAllShardsAtOneMoment: otherwise a goroutine that allocates beside it
// and one that frees what it was handed leave the free in this batch, and the
// allocation in the next.
func TestFlushTakesAllShardsAtOneMoment(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	r := NewRecorder(nowhere{}, RecorderConfig{Interval: time.Hour})
	defer r.Close()
	last := &r.shards[len(r.shards)-1]
	last.mu.Lock()
	defer last.mu.Unlock() // before Close
	go r.Flush()
	for i := range r.shards[:len(r.shards)-1] {
		s := &r.shards[i]
		for end := time.Now().Add(20 * time.Second); s.mu.TryLock(); time.Sleep(time.Millisecond) {
			s.mu.Unlock()
			if time.Now().After(end) {
				t.Fatalf("shard %d takes events while the flush waits for another", i)
			}
		}
	}
}

type nowhere struct{}

func (nowhere) WriteBatch(e []Event, _ []string) (int, error) { return len(e), nil }
func (nowhere) Close() error                                  { return nil }
