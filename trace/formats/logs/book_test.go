package logs

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// TestBook replays random logs over few addresses beside a map of the objects there.
func TestBook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type place struct {
			space pressure.Space
			addr  uint64
		}
		b := newBook(strings.NewReader(""), 10)
		there, seen := map[place]int64{}, map[place]bool{}
		var now, live, before int64
		added := 0
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			when := now + rapid.Int64Range(-10, 20).Draw(t, "later")
			at := place{pressure.Space(rapid.IntRange(0, 1).Draw(t, "space")), rapid.Uint64Range(1, 4).Draw(t, "address")}
			bytes := rapid.Int64Range(0, 100).Draw(t, "bytes")
			e := trace.Event{Time: when, Space: at.space, Bytes: bytes}
			size, isThere := there[at]
			var err error
			switch {
			case rapid.Bool().Draw(t, "alloc"):
				if err = b.alloc(e, at.addr); (err == nil) == isThere {
					t.Fatalf("alloc at %v, where there is something (%v): %v", at, isThere, err)
				}
				if err == nil {
					there[at] = bytes
					live += bytes
				}
			case isThere:
				e.Bytes = size
				if err = b.free(e, at.addr); err != nil {
					t.Fatal(err)
				}
				delete(there, at)
				live -= size
			default:
				if err = b.free(e, at.addr); (err == nil) == seen[at] {
					t.Fatalf("free at %v, which was seen before (%v): %v", at, seen[at], err)
				}
				if err == nil {
					before += bytes
				}
			}
			if err != nil {
				return // an importer stops here
			}
			if added++; added == 1 {
				now = when
			}
			now = max(now, when)
			seen[at] = true
			was, _ := b.objects.Find(at.space, at.addr)
			if _, ok := there[at]; ok != was.Live {
				t.Fatalf("live at %v: %v", at, !ok)
			}
		}
		if added == 0 {
			return
		}
		if err := b.wait(trace.Event{Time: now, Duration: 5}); err != nil {
			t.Fatal(err)
		}
		var tr trace.Trace
		if err := b.finish(&tr, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := tr.Validate(); err != nil {
			t.Fatal(err)
		}
		if s := recording.StatsOf(&tr); s.LastBytes != live || s.LastObjects != len(there) || s.Syncs != 1 || s.AllocatedBytes < before {
			t.Fatalf("%+v, want %d bytes in %d objects", s, live, len(there))
		}
	})
}
