package torchsnap

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

func sample(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func mustRead(tb testing.TB, file []byte) *trace.Trace {
	tb.Helper()
	t, err := Read(bytes.NewReader(file))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// TestEveryProtocolGivesTheSameTrace: pickles of one snapshot by Python, protocol 2 to 5.
func TestEveryProtocolGivesTheSameTrace(t *testing.T) {
	for _, pair := range [][]string{
		{"devices.p4.pickle", "devices.p2.pickle", "devices.p3.pickle", "devices.p5.pickle"}, {"cut.p4.pickle", "cut.p2.pickle"},
	} {
		want := mustRead(t, sample(t, pair[0]))
		for _, name := range pair[1:] {
			if got := mustRead(t, sample(t, name)); !reflect.DeepEqual(got, want) {
				t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
			}
			if !Detect(sample(t, name)) {
				t.Errorf("%s is not detected", name)
			}
		}
	}
	for _, s := range []string{"", "\x80", "{\"traceEvents\":[]}", "\x80\x01", "\x80\x06", "(1,2)"} {
		if Detect([]byte(s)) {
			t.Errorf("%q is detected", s)
		}
	}
}

// newest adds to an entry what newer versions of PyTorch write.
func newest(e dict) dict {
	return append(e, item{"user_metadata", "step 3"}, item{"pool_id", list{0, 1}}, item{"compile_context", "N/A"})
}

// TestEvents: what each action becomes, and when.
func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		want string
		meta map[string]string
	}{
		// Device 1 held 600 bytes, and 8192 reserved; device 0 took its segment 1 us before time 0.
		"two devices": {sample(t, "devices.p4.pickle"), `
0 reserve bytes=4096 space=device0
0 mark duration=8000 label="step"
0 reserve bytes=8192 space=device1
0 alloc id=3 bytes=600 space=device1
0 alloc id=1 bytes=1000 space=device0
4000 drop id=3 bytes=600 space=device1
9000 alloc id=4 bytes=3000 space=device1
19000 alloc id=2 bytes=500 space=device0 stream=1
29000 mark space=device1 label="snapshot"`, map[string]string{"live_before_objects": "1", "live_before_bytes": "600", "entries": "6", "devices": "2", "clock": "wall clock, us"}},
		"out of memory": {sample(t, "oom.p4.pickle"), `
0 reserve bytes=2097152 space=device0
0 alloc id=1 bytes=700 space=device0
2000 refuse bytes=106300440576 space=device0
4000 alloc id=2 bytes=8 space=device0
5000 drop id=2 bytes=8 space=device0`, nil},
		"segments that grow": {sample(t, "expandable.p4.pickle"), `
0 reserve bytes=4194304 space=device0
0 alloc id=1 bytes=2097152 space=device0
1000 alloc id=2 bytes=2000000 space=device0
2000 drop id=2 bytes=2000000 space=device0
3000 release bytes=2097152 space=device0
5000 reserve bytes=4194304 space=device0
6000 alloc id=3 bytes=10 space=device0`, map[string]string{"live_before_objects": "0"}},
		// Without free_requested (skip_actions), free_completed says when objects died. A block that waits to be freed is not in use.
		"skipped actions": {pickled(snap(list{segmentOf(0, 1<<16, 4096, blockOf(1<<16, 100, "active_pending_free"))},
			newest(entryOf("free_completed", 4096, 512, 10)), newest(entryOf("alloc", 8192, 1024, 20)), newest(entryOf("free_completed", 8192, 1024, 30)))), `
0 reserve bytes=4096 space=device0
0 alloc id=1 bytes=1024 space=device0
10000 drop id=1 bytes=1024 space=device0`, map[string]string{"live_before_objects": "0"}},
	} {
		tr := mustRead(t, c.file)
		var got strings.Builder
		for _, e := range tr.Events {
			got.WriteString("\n" + recording.Text(tr, e))
		}
		if got.String() != c.want {
			t.Errorf("%s: got%s\nwant%s", name, &got, c.want)
		}
		for key, want := range c.meta {
			if tr.Meta[key] != want {
				t.Errorf("%s: %s is %q, want %q", name, key, tr.Meta[key], want)
			}
		}
		if err := tr.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if tr, want := mustRead(t, sample(t, "devices.p4.pickle")), time.UnixMicro(1_700_000_000_000_001); !tr.Start.Equal(want) {
		t.Errorf("Start = %v, want %v", tr.Start, want)
	}
}

func TestBadInput(t *testing.T) {
	const us = 1_700_000_000_000_000
	alloc := entryOf("alloc", 512, 100, us)
	of := func(entries ...any) []byte { return pickled(snap(list{}, entries...)) }
	one := of(alloc)
	for _, c := range []struct {
		file []byte
		want string
	}{
		{nil, "byte 0: unexpected EOF"},
		{one[:len(one)-20], "unexpected EOF"},
		{append(bytes.Clone(one), 0), "bytes after the end"},
		{sample(t, "global.p4.bad"), "opcode 0x93: a snapshot is plain data"},
		{pickled(snap(list{raw("NR")})), "opcode 0x52"},
		{[]byte("\x80\x04\xff."), "byte 2: opcode 0xff"},
		{[]byte("\x80\x06}."), "protocol 6 (2 to 5 are known)"},
		{[]byte("\x80\x01}."), "protocol 1"},
		{[]byte("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"), "beyond any file"},
		{[]byte("\x80\x04\x8d\xff\xff\xff\xff\xff\x00\x00\x00"), "only 0 bytes are left"},
		{[]byte("\x80\x04B\xff\xff\xff\xffabc"), "only 3 bytes are left"},
		{[]byte("\x80\x04\x8b\xff\xff\xff\x7f"), "integer of 2147483647 bytes"},
		{[]byte("\x80\x04Nr\xff\xff\xff\xff."), "memo key 4294967295 after 0 keys"},
		{[]byte("\x80\x04h\x07."), "memo has no key 7"},
		{[]byte("\x80\x04u."), "stack underflow"},
		{[]byte("\x80\x04]."), "not one dict"},
		{[]byte("\x80\x04}}."), "not one dict"},
		{[]byte("\x80\x04}."), "not a memory snapshot"},
		{of(), "empty trace"},
		{of(alloc, entryOf("alloc", 1024, 0, us)), "device 0, entry 1: alloc: size 0 is not in"},
		{of(entryOf("free_requested", 1024, raw("\x8a\x01\xfb"), us)), "size -5 is not in"},
		{of(entryOf("alloc", 1024, 1<<62, us)), "size 4611686018427387904 is not in"},
		{of(entryOf("alloc", 1024, raw("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"), us)), "size is beyond 64 bits"},
		{of(entryOf("alloc", 1024, "12", us)), "size is no integer"},
		{of(entryOf("alloc", 512, 1<<62-1, us), entryOf("alloc", 1024, 1, us)), "entry 1: the sizes so far add up"},
		{of(entryOf("segment_alloc", 512, 1<<62-1, us), entryOf("segment_map", 512, 1, us)), "entry 1: the sizes so far add up"},
		{pickled(dict{{"device_traces", slices.Repeat(list{list{alloc}}, 254)}}), "device 253: at most 253 devices"},
		{of(dict{{"time_us", us}}), "no action"},
		{of(entryOf("alloz", 512, 1, us)), `unknown action "alloz"`},
		{of(dict{{"action", "alloc"}, {"size", 3}, {"time_us", us}}), "no addr"},
		{of(entryOf("alloc", -512, 1, us)), "addr -512 is not in"},
		{of(alloc, alloc), "entry 1: allocation of address 0x200, which entry 0 allocated"},
		{of(alloc, entryOf("free_requested", 512, 100, us), entryOf("free_requested", 512, 100, us)), "device 0, entry 2: double free of address 0x200, which entry 1 freed"},
		{of(entryOf("free_requested", 512, 100, us), entryOf("free_requested", 512, 100, us)), "entry 1: double free"},
		{of(alloc, entryOf("alloc", 1024, 1, us-1)), "entry 1: time goes backwards"},
		{of(alloc, dict{{"action", "alloc"}, {"addr", 9}, {"size", 3}}), "device 0, entry 1: no time_us"},
		{of(entryOf("alloc", 1024, 1, 1<<62)), "time_us 4611686018427387904 is not in"},
		{of(5), "that is no dict"},
		{of(raw("}q\x00"), raw("h\x00")), "no time_us"},
		{pickled(raw(strings.Repeat("}(X\x01\x00\x00\x00a", maxRecords+1))), "dicts without a container"},
		{pickled(raw("(" + strings.Repeat("N", maxStack+1))), "values without a container"},
		{pickled(raw(strings.Repeat("(", maxStack+1))), "marks"},
		{of(raw("}q\x00(X\x06\x00\x00\x00actionX\x08\x00\x00\x00snapshotX\x07\x00\x00\x00time_usK\x01u"), raw("h\x00")), "same as an earlier one"},
		{pickled(snap(list{segmentOf(999, 0, 1)}, alloc)), "segment: device 999"},
		{pickled(snap(list{segmentOf(0, 0, -1)}, alloc)), "segment: total_size -1"},
		{pickled(snap(list{segmentOf(0, 0, 4096, blockOf(0, 0, "active_allocated"))}, alloc)), "requested_size 0"},
		{pickled(dict{{"device_traces", list{5}}}), "device_traces holds what is no list"},
		{pickled(append(snap(nil, alloc), item{"external_annotations", list{dict{{"stage", "MID"}, {"time_us", 1}}}})), `unknown stage "MID"`},
	} {
		_, err := Read(bytes.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "torchsnap: ") {
			t.Errorf("got error %v, want one with %q", err, c.want)
		}
	}
}

// TestLongList: a list that is closed only after all of its items, as PyTorch's own pickler writes
// it, is no larger for the reader. Strings that are not kept do not crowd out those that matter.
func TestLongList(t *testing.T) {
	var entries []any
	for i := range maxTexts + 10 {
		e := entryOf("snapshot", 512, 1, 1_700_000_000_000_000+i)
		entries = append(entries, append(e, item{"user_metadata", fmt.Sprint("run ", i)}))
	}
	entries = append(entries, entryOf("alloc", 512, 1, 1_800_000_000_000_000))
	entries = append(entries, append(entryOf("free_requested", 512, 1, 1_800_000_000_000_000), item{"frames", strings.Repeat("x", 1<<17)}))
	tr := mustRead(t, pickled(snap(list{}, entries...)))
	if got := recording.StatsOf(tr); tr.Validate() != nil || got.Drops != 1 {
		t.Errorf("got %+v", got)
	}
}

// TestDrawnSnapshots: another digest means that a trace or an error differs. To see which, print each text before and after the change.
func TestDrawnSnapshots(t *testing.T) {
	r, sum := rand.New(rand.NewPCG(1, 0)), sha256.New()
	pick := func(list string) string { all := strings.Split(list, ","); return all[r.IntN(len(all))] }
	for range 600 {
		var segments, traces, notes list
		for device := range 1 + r.IntN(3) {
			var entries list
			now := 100 + r.IntN(20)
			for range r.IntN(12) {
				now += r.IntN(9)
				e := entryOf(pick("alloc,alloc,alloc,free_requested,free_completed,segment_alloc,segment_map,segment_free,segment_unmap,oom,snapshot,workspace_snapshot,empty_cache,user_defined"), r.IntN(25), 1+r.IntN(900), now)
				e[3].value = any(raw("J\xfe\xff\x01\x00"))
				if r.IntN(2) == 0 {
					e[3].value = r.IntN(3)
				}
				entries = append(entries, e)
				notes = append(notes, dict{{"stage", pick("START,END")}, {"name", pick("a,b")}, {pick("device,x"), r.IntN(2)}, {pick("time_us,time_us,x"), now + r.IntN(30) - 15}})
			}
			var blocks []any
			for range r.IntN(4) {
				b := blockOf(30+r.IntN(900), 1+r.IntN(900), pick("active_allocated,active_allocated,inactive,active_pending_free"))
				b[2].key = pick("requested_size,x")
				blocks = append(blocks, b)
			}
			segments, traces = append(segments, segmentOf(device, 0, 1<<12, blocks...)), append(traces, entries)
			segments[device].(dict)[3].value = r.IntN(3)
		}
		// Values that a reader has to skip, of each kind.
		more := pick("\x8f(K\x01\x90,(K\x01\x91,C\x02ab,\x8e\x02\x00\x00\x00\x00\x00\x00\x00ab,\x96\x02\x00\x00\x00\x00\x00\x00\x00ab,X\x01\x00\x00\x00xr\x05\x00\x00\x00j\x05\x00\x00\x00\x86")
		tr, err := Read(bytes.NewReader(pickled(dict{{"x", raw(more)}, {"segments", segments}, {"device_traces", traces}, {"external_annotations", notes}})))
		if fmt.Fprintln(sum, err); err == nil {
			fmt.Fprintln(sum, tr.Meta, recording.WriteText(sum, tr))
		}
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); got != "af99d7d520767270" {
		t.Errorf("digest %s", got)
	}
}
