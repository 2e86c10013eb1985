package torchsnap

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/pressure"
)

// A model is an allocator that keeps a history of its actions, as PyTorch's
// does: one segment for each object, and never the same address live twice.
type model struct {
	live    map[int]int // size by address
	entries list
	now     int
}

const modelBase = 1_700_000_000_000_000

func (m *model) step(t *rapid.T) {
	m.now += rapid.IntRange(0, 3).Draw(t, "us")
	var used []int
	for addr := range m.live {
		used = append(used, addr)
	}
	slices.Sort(used)
	if len(used) > 0 && rapid.Bool().Draw(t, "free") {
		addr := rapid.SampledFrom(used).Draw(t, "addr")
		m.add("free_requested", addr, m.live[addr])
		m.add("free_completed", addr, m.live[addr])
		delete(m.live, addr)
		return
	}
	addr := 4096 * rapid.IntRange(1, 12).Draw(t, "new")
	if _, ok := m.live[addr]; ok {
		return
	}
	m.live[addr] = rapid.IntRange(1, 4096).Draw(t, "size")
	m.add("alloc", addr, m.live[addr])
}

func (m *model) add(action string, addr, size int) {
	m.entries = append(m.entries, entryOf(action, addr, size, modelBase+m.now))
}

// snapshot is the state now and the last entries, from entry first on.
func (m *model) snapshot(device, first int) (segment dict, entries list) {
	var blocks list
	for addr, size := range m.live {
		blocks = append(blocks, blockOf(addr, size, "active_allocated"))
	}
	blocks = append(blocks, blockOf(1<<20, 77, "inactive"), blockOf(1<<21, 77, "active_pending_free"))
	return segmentOf(device, 4096, 1<<20, blocks...), m.entries[first:]
}

// However much of the history the ring buffer has lost, what was live at its
// first entry is rebuilt, and what follows is the same.
func TestRingBuffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var segments, traces list
		var want []tally
		for device := range rapid.IntRange(1, 3).Draw(t, "devices") {
			m := &model{live: make(map[int]int)}
			for range rapid.IntRange(1, 60).Draw(t, "steps") {
				m.step(t)
			}
			first := rapid.IntRange(0, len(m.entries)-1).Draw(t, "first")
			segment, entries := m.snapshot(device, first)
			segments, traces = append(segments, segment), append(traces, entries)
			want = append(want, m.tally(first))
		}
		tr, err := Read(bytes.NewReader(pickled(dict{{"segments", segments}, {"device_traces", traces}})))
		if err != nil {
			t.Fatal(err)
		}
		for device, w := range want {
			if got := tallyOf(t, tr, pressure.Device(device)); got != w {
				t.Fatalf("device %d: got %+v, want %+v", device, got, w)
			}
		}
	})
}

// tally replays the whole history forwards, and counts from entry first on.
func (m *model) tally(first int) tally {
	var y tally
	objects := 0
	for i, e := range m.entries {
		if i == first {
			y = tally{Peak: y.End, End: y.End, Allocs: objects}
		}
		d := e.(dict)
		switch size := int64(d[2].value.(int)); d[0].value {
		case "alloc":
			y.Allocs++
			objects++
			y.End += size
		case "free_requested":
			y.Drops++
			objects--
			y.End -= size
		}
		y.Peak = max(y.Peak, y.End)
	}
	return y
}
