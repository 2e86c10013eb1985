package torchsnap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

func sample(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return unpacked(tb, name, b)
}

func mustRead(tb testing.TB, file []byte) *trace.Trace {
	tb.Helper()
	t, err := Read(bytes.NewReader(file))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// A tally is what testdata/make.py works out of a device by walking its entries
// backwards.
type tally struct {
	BeforeObjects int   `json:"before_objects"`
	BeforeBytes   int64 `json:"before_bytes"`
	Peak          int64 `json:"peak"`
	End           int64 `json:"end"`
	Allocs        int   `json:"allocs"`
	Drops         int   `json:"drops"`
}

// tallyOf adds up a device, and checks on the way that t is a trace.
func tallyOf(tb failer, t *trace.Trace, space pressure.Space) tally {
	tb.Helper()
	if err := t.Validate(); err != nil {
		tb.Fatalf("%v", err)
	}
	var y tally
	for _, e := range t.Events {
		switch {
		case e.Space != space:
		case e.Kind == trace.Alloc:
			y.Allocs++
			y.End += e.Bytes
		case e.Kind == trace.Drop:
			y.Drops++
			y.End -= e.Bytes
		}
		y.Peak = max(y.Peak, y.End)
	}
	return y
}

func TestSamples(t *testing.T) {
	var want map[string][]tally
	if err := json.Unmarshal(sample(t, "expected.json"), &want); err != nil {
		t.Fatal(err)
	}
	for name, devices := range want {
		t.Run(name, func(t *testing.T) {
			tr := mustRead(t, sample(t, name+".p4.pickle"))
			objects, bytes := 0, int64(0)
			for n, w := range devices {
				objects += w.BeforeObjects
				bytes += w.BeforeBytes
				w.BeforeObjects, w.BeforeBytes = 0, 0
				if got := tallyOf(t, tr, pressure.Device(n)); got != w {
					t.Errorf("device %d: got %+v, want %+v", n, got, w)
				}
			}
			checkMeta(t, tr, "live_before_objects", objects)
			checkMeta(t, tr, "live_before_bytes", int(bytes))
		})
	}
}

func checkMeta(t *testing.T, tr *trace.Trace, key string, want int) {
	t.Helper()
	var got int
	if err := json.Unmarshal([]byte(tr.Meta[key]), &got); err != nil || got != want {
		t.Errorf("Meta[%q] = %q, want %d", key, tr.Meta[key], want)
	}
}

// Every protocol gives the same trace.
func TestSameTrace(t *testing.T) {
	for _, pair := range [][]string{
		{"devices.p4.pickle", "devices.p0.pickle", "devices.p1.pickle", "devices.p2.pickle", "devices.p3.pickle",
			"devices.p5.pickle"},
		{"cut.p4.pickle", "cut.p2.pickle"},
	} {
		want := mustRead(t, sample(t, pair[0]))
		for _, name := range pair[1:] {
			if got := mustRead(t, sample(t, name)); !reflect.DeepEqual(got, want) {
				t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
			}
		}
	}
}

func checkEvents(t *testing.T, tr *trace.Trace, want ...string) {
	t.Helper()
	var got []string
	for _, e := range tr.Events {
		got = append(got, recording.Text(tr, e))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEvents(t *testing.T) {
	tr := mustRead(t, sample(t, "devices.p4.pickle"))
	checkEvents(t, tr,
		// Device 1 held 600 bytes, and 8192 reserved; device 0 took its segment 1 us before time 0.
		`0 reserve bytes=4096 space=device0`,
		`0 mark duration=8000 label="step"`,
		`0 reserve bytes=8192 space=device1`,
		`0 alloc id=3 bytes=600 space=device1`,
		`0 alloc id=1 bytes=1000 space=device0`,
		`4000 drop id=3 bytes=600 space=device1`,
		`9000 alloc id=4 bytes=3000 space=device1`,
		`19000 alloc id=2 bytes=500 space=device0 stream=1`,
		`29000 mark space=device1 label="snapshot"`,
	)
	if want := time.UnixMicro(1_700_000_000_000_001); !tr.Start.Equal(want) {
		t.Errorf("Start = %v, want %v", tr.Start, want)
	}
}

func TestOutOfMemory(t *testing.T) {
	checkEvents(t, mustRead(t, sample(t, "oom.p4.pickle")),
		`0 reserve bytes=2097152 space=device0`,
		`0 alloc id=1 bytes=700 space=device0`,
		`2000 refuse bytes=106300440576 space=device0`,
		`4000 alloc id=2 bytes=8 space=device0`,
		`5000 drop id=2 bytes=8 space=device0`,
	)
}

func TestNoTime(t *testing.T) {
	tr := mustRead(t, sample(t, "notime.p4.pickle"))
	checkEvents(t, tr,
		`0 reserve bytes=4096 space=device0`,
		`0 alloc id=3 bytes=512 space=device0`,
		`0 alloc id=1 bytes=100 space=device0`,
		`1000 drop id=1 bytes=100 space=device0`,
		`3000 alloc id=2 bytes=200 space=device0`,
		`4000 drop id=2 bytes=200 space=device0`,
	)
	if !tr.Start.IsZero() || !strings.HasPrefix(tr.Meta["clock"], "none") {
		t.Errorf("Start = %v, clock = %q", tr.Start, tr.Meta["clock"])
	}
}

func TestBadInput(t *testing.T) {
	const us = modelBase
	alloc := entryOf("alloc", 512, 100, us)
	one := pickled(snap(list{}, alloc))
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":             {nil, "byte 0: unexpected EOF"},
		"truncated":         {one[:len(one)-20], "unexpected EOF"},
		"trailing":          {append(bytes.Clone(one), 0), "bytes after the end"},
		"global":            {sample(t, "global.p4.bad"), "opcode STACK_GLOBAL posix.system"},
		"global, text":      {sample(t, "global.p0.bad"), "opcode GLOBAL posix.system"},
		"reduce":            {pickled(snap(list{raw("NR")})), "opcode REDUCE"},
		"build":             {pickled(dict{{"x", raw("}}b")}}), "opcode BUILD"},
		"unknown opcode":    {[]byte("\x80\x04\xff."), "byte 2: unknown opcode 0xff"},
		"protocol":          {[]byte("\x80\x09}."), "protocol 9"},
		"huge length":       {[]byte("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"), "beyond any file"},
		"long length":       {[]byte("\x80\x04\x8d\xff\xff\xff\xff\xff\x00\x00\x00"), "only 0 bytes are left"},
		"huge blob":         {[]byte("\x80\x04B\xff\xff\xff\xffabc"), "only 3 bytes are left"},
		"huge integer":      {[]byte("\x80\x04\x8b\xff\xff\xff\x7f"), "integer of 2147483647 bytes"},
		"huge memo":         {[]byte("\x80\x04Nr\xff\xff\xff\xff."), "memo key 4294967295 after 0 keys"},
		"no memo":           {[]byte("\x80\x04h\x07."), "memo has no key 7"},
		"underflow":         {[]byte("\x80\x04u."), "stack underflow"},
		"not a dict":        {[]byte("\x80\x04]."), "not one dict"},
		"not a snapshot":    {[]byte("\x80\x04}."), "not a memory snapshot"},
		"empty trace":       {pickled(snap(list{})), "empty trace"},
		"zero size":         {pickled(snap(list{}, alloc, entryOf("alloc", 1024, 0, us))), "device 0, entry 1: alloc: size 0 is not in"},
		"negative size":     {pickled(snap(list{}, entryOf("free_requested", 1024, -5, us))), "size -5 is not in"},
		"size over 2^62":    {pickled(snap(list{}, entryOf("alloc", 1024, 1<<62, us))), "size 4611686018427387904 is not in"},
		"size over 64 bits": {pickled(snap(list{}, entryOf("alloc", 1024, raw("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"), us))), "size is beyond 64 bits"},
		"size is text":      {pickled(snap(list{}, entryOf("alloc", 1024, "12", us))), "size is no integer"},
		"sum over 2^62":     {pickled(snap(list{}, entryOf("alloc", 512, 1<<62-1, us), entryOf("alloc", 1024, 1, us))), "entry 1: the sizes so far add up"},
		"no action":         {pickled(snap(list{}, dict{{"time_us", us}})), "no action"},
		"unknown action":    {pickled(snap(list{}, entryOf("alloz", 512, 1, us))), `unknown action "alloz"`},
		"no addr":           {pickled(snap(list{}, dict{{"action", "alloc"}, {"size", 3}, {"time_us", us}})), "no addr"},
		"negative addr":     {pickled(snap(list{}, entryOf("alloc", -512, 1, us))), "addr -512 is not in"},
		"alloc twice":       {pickled(snap(list{}, alloc, alloc)), "entry 1: allocation of address 0x200, which entry 0 allocated"},
		"double free": {pickled(snap(list{}, alloc, entryOf("free_requested", 512, 100, us), entryOf("free_requested", 512, 100, us))),
			"device 0, entry 2: double free of address 0x200, which entry 1 freed"},
		"double free of before": {pickled(snap(list{}, entryOf("free_requested", 512, 100, us), entryOf("free_requested", 512, 100, us))),
			"entry 1: double free"},
		"unknown address": {pickled(snap(list{}, entryOf("segment_alloc", 4096, 4096, us), entryOf("free_requested", 5120, 100, us))),
			"entry 1: free of address 0x1400, which was never allocated"},
		"backwards":       {pickled(snap(list{}, alloc, entryOf("alloc", 1024, 1, us-1))), "entry 1: time goes backwards"},
		"some times":      {pickled(snap(list{}, alloc, dict{{"action", "alloc"}, {"addr", 9}, {"size", 3}})), "some entries have time_us"},
		"time out":        {pickled(snap(list{}, entryOf("alloc", 1024, 1, 1<<62))), "time_us 4611686018427387904 is not in"},
		"entry no dict":   {pickled(snap(list{}, 5)), "that is no dict"},
		"entry of memo":   {pickled(snap(list{}, raw("}q\x00"), raw("h\x00"))), "no action"},
		"many dicts":      {pickled(raw(strings.Repeat("}(X\x01\x00\x00\x00a", maxRecords+1))), "dicts without a container"},
		"many values":     {pickled(raw("(" + strings.Repeat("N", maxStack+1))), "values without a container"},
		"many marks":      {pickled(raw(strings.Repeat("(", maxStack+1))), "marks"},
		"shared entry":    {pickled(snap(list{}, raw("}q\x00(X\x06\x00\x00\x00actionX\x08\x00\x00\x00snapshotX\x07\x00\x00\x00time_usK\x01u"), raw("h\x00"))), "same as an earlier one"},
		"device":          {pickled(snap(list{segmentOf(999, 0, 1)}, alloc)), "segment: device 999"},
		"segment total":   {pickled(snap(list{segmentOf(0, 0, -1)}, alloc)), "segment: total_size -1"},
		"block size":      {pickled(snap(list{segmentOf(0, 0, 4096, blockOf(0, 0, "active_allocated"))}, alloc)), "requested_size 0"},
		"traces no lists": {pickled(dict{{"device_traces", list{5}}}), "device_traces holds what is no list"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "torchsnap: ") {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A list that is closed only after all of its items, as PyTorch's own pickler
// writes it, is no larger for the reader; and strings that are not kept do not
// crowd out those that matter.
func TestLongList(t *testing.T) {
	var entries []any
	for i := range maxTexts + 10 {
		e := entryOf("snapshot", 512, 1, 1_700_000_000_000_000+i)
		entries = append(entries, append(e, item{"user_metadata", fmt.Sprint("run ", i)}))
	}
	entries = append(entries, entryOf("alloc", 512, 1, 1_800_000_000_000_000))
	entries = append(entries, append(entryOf("free_requested", 512, 1, 1_800_000_000_000_000), item{"frames", strings.Repeat("x", 1<<17)}))
	tr := mustRead(t, pickled(snap(list{}, entries...)))
	if got := tallyOf(t, tr, pressure.Device(0)); got.Drops != 1 {
		t.Errorf("got %+v", got)
	}
}

// A file that is cut off anywhere, or has one bit flipped, is an error or a
// trace that holds together; packed with a checksum, it is always an error.
func TestDamaged(t *testing.T) {
	file := sample(t, "devices.p4.pickle")
	for n := range file {
		if _, err := Read(bytes.NewReader(file[:n])); err == nil {
			t.Fatalf("cut after %d bytes: no error", n)
		}
		for bit := range 8 {
			bad := bytes.Clone(file)
			bad[n] ^= 1 << bit
			if tr, err := Read(bytes.NewReader(bad)); err == nil {
				tallyOf(t, tr, pressure.Device(0))
			}
		}
	}
}

func TestDetect(t *testing.T) {
	for _, name := range []string{"devices.p0.pickle", "devices.p1.pickle", "devices.p2.pickle", "cut.p4.pickle"} {
		if !Detect(sample(t, name)) {
			t.Errorf("%s is not detected", name)
		}
	}
	for _, s := range []string{"", "\x80", "{\"traceEvents\":[]}", "\x80\x50", "(1,2)"} {
		if Detect([]byte(s)) {
			t.Errorf("%q is detected", s)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.p*"))
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		f.Add(sample(f, filepath.Base(name)))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if tr, err := Read(bytes.NewReader(file)); err == nil {
			tallyOf(t, tr, pressure.Device(0))
		}
	})
}

// A failer is a testing.TB or a rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}
