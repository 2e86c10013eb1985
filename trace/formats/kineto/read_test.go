package kineto

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	gotime "time"

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
	checkTrace(tb, t)
	return t
}

func checkTrace(tb testing.TB, t *trace.Trace) {
	tb.Helper()
	if err := t.Validate(); err != nil {
		tb.Fatal(err)
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
	tr := mustRead(t, sample(t, "devices.json"))
	checkEvents(t, tr,
		`0 mark duration=1499 stream=1 label="step \"1\" é"`,
		`0 alloc id=2 bytes=200 space=device0`,
		`0 reserve bytes=4096 space=device0`,
		`0 alloc id=1 bytes=100 space=device0 stream=1`,
		`999 drop id=2 bytes=200 space=device0 stream=1`,
		`1999 reserve bytes=4096 space=device0`,
		`1999 drop id=1 bytes=100 space=device0 stream=1`,
		`1999 sync space=device0 duration=250 stream=2`,
		`3999 refuse bytes=1099511627776 space=device0 stream=1`,
		`10499 reserve bytes=4096 space=device1`,
		`10499 alloc id=3 bytes=512 space=device1 stream=1`,
	)
	if want := gotime.Unix(1_700_000_000, 10_001); !tr.Start.Equal(want) { // 10.0005 us: rounded up
		t.Errorf("Start = %v, want %v", tr.Start, want)
	}
	if tr.Meta["cpu_memory_events_left_out"] != "1" || tr.Meta["live_before_bytes"] != "200" {
		t.Errorf("Meta = %v", tr.Meta)
	}
}

// The last 40 memory events of a run: what was live before is all there, as
// objects of its frees and one of what nothing frees.
func TestLast(t *testing.T) {
	tr := mustRead(t, sample(t, "last.json"))
	var live int64
	for _, e := range tr.Events {
		switch e.Kind {
		case trace.Alloc:
			live += e.Bytes
		case trace.Drop:
			live -= e.Bytes
		}
	}
	if want := int64(67240448); live != want { // the last Total Allocated
		t.Errorf("live at the end = %d, want %d", live, want)
	}
}

func TestSyncOnly(t *testing.T) {
	tr := mustRead(t, sample(t, "sync.json.gz"))
	if len(tr.Events) != 16 {
		t.Errorf("%d events, want 16 waits", len(tr.Events))
	}
}

func TestListForm(t *testing.T) {
	tr := mustRead(t, []byte(`[{"ph":"X","name":"cudaStreamSynchronize","ts":5,"dur":1}, {"ph":"X","name":"cudaStreamSynchronize","ts":"?","ts":7.25,"dur":2e0}]`))
	checkEvents(t, tr,
		`0 sync space=device0 duration=1000`,
		`2250 sync space=device0 duration=2000`,
	)
	if !tr.Start.IsZero() {
		t.Errorf("Start = %v from a clock that does not count from 1970", tr.Start)
	}
}

// mem is a [memory] event.
func mem(ts float64, addr uint64, bytes int64) string {
	return fmt.Sprintf(`{"name":"[memory]","ph":"i","ts":%v,"args":{"Addr":%d,"Bytes":%d,"Device Id":0,"Device Type":1}}`, ts, addr, bytes)
}

func TestBadInput(t *testing.T) {
	total := strings.Replace(mem(2, 8, -300), `"Addr"`, `"Total Allocated":100,"Addr"`, 1)
	for name, c := range map[string]struct{ file, want string }{
		"empty":            {"", "byte 0: unexpected EOF"},
		"white space":      {" \n", "byte 2: unexpected EOF"},
		"not JSON":         {"hello", "byte 0: invalid character 'h'"},
		"no events":        {`{"a":[1,2.5e-3,true,null,{"b":"c"}]}`, "no traceEvents"},
		"empty list":       {`{"traceEvents":[]}`, "empty trace"},
		"nothing of use":   {`{"traceEvents":[{"name":"x","ph":"X","ts":1}]}`, "empty trace: none of 1 events"},
		"two lists":        {`{"traceEvents":[],"traceEvents":[]}`, "a second traceEvents"},
		"event no object":  {`[5]`, "empty trace: none of 1 events"},
		"truncated":        {`[{"name":"[mem`, "byte 14: unexpected EOF"},
		"no comma":         {`[{"a":1 "b":2}]`, "byte 1: invalid character '\"' after object key:value pair"},
		"no colon":         {`[{"a" 1}]`, "byte 1: invalid character '1' after object key"},
		"bad literal":      {`[{"a":nul}]`, "invalid character '}' in literal null"},
		"bad number":       {`[{"a":01}]`, "invalid character '1' after object key:value pair"},
		"bad value":        {`[{"a":?}]`, "invalid character '?' looking for beginning of value"},
		"control":          {"[{\"a\":\"\n\"}]", "invalid character '\\n' in string literal"},
		"escape":           {`[{"a":"\q"}]`, "invalid character 'q' in string escape code"},
		"unicode":          {`[{"a":"\u12g4"}]`, "invalid character 'g' in \\u hexadecimal"},
		"after the end":    {`[` + mem(1, 1, 1) + `] x`, "invalid character 'x'"},
		"deep":             {`{"a":` + strings.Repeat("[", 20_000), "exceeded max depth"},
		"long time":        {`[{"name":"cudaStreamSynchronize","ph":"X","dur":1,"ts":0.` + strings.Repeat("1", 100) + `}]`, "is out of range"},
		"base":             {`{"baseTimeNanoseconds":-1,"traceEvents":[]}`, "baseTimeNanoseconds is no time"},
		"no bytes":         {`[{"name":"[memory]","ts":1,"args":{"Device Id":0,"Addr":1}}]`, `traceEvents[0]: no integer "Bytes"`},
		"no address":       {`[{"name":"[memory]","ts":1,"args":{"Device Id":0,"Bytes":1}}]`, `no integer "Addr"`},
		"no device":        {`[{"name":"[memory]","ts":1,"args":{"Bytes":1,"Addr":1}}]`, `no integer "Device Id"`},
		"no ts":            {`[{"name":"[memory]","args":{"Bytes":1,"Addr":1,"Device Id":0}}]`, "[memory] has no ts"},
		"ts range":         {`[{"name":"cudaStreamSynchronize","ph":"X","dur":1,"ts":1e30}]`, "ts of cudaStreamSynchronize is out of range"},
		"dur":              {`[{"name":"cudaStreamSynchronize","ph":"X","dur":-1,"ts":1}]`, "dur of cudaStreamSynchronize is negative"},
		"no dur":           {`[{"name":"cudaStreamSynchronize","ph":"X","ts":1}]`, "has no dur"},
		"before 1970":      {`[{"name":"cudaStreamSynchronize","ph":"X","ts":-1,"dur":1}]`, "traceEvents[0]: time before 1970"},
		"zero size":        {`[` + mem(1, 1, 0) + `]`, "traceEvents[0]: [memory] of 0 Bytes"},
		"size over 2^62":   {`[` + mem(1, 1, 1<<62) + `]`, "Bytes 4611686018427387904 is not in"},
		"size over int64":  {`[{"name":"[memory]","ts":1,"args":{"Bytes":99999999999999999999,"Addr":1,"Device Id":0}}]`, "Bytes is beyond 64 bits"},
		"sum over 2^62":    {`[` + mem(1, 1, 1<<62-1) + `,` + mem(2, 2, 1) + `]`, "traceEvents[1]: the sizes so far add up"},
		"negative refusal": {`[{"name":"[OutOfMemory]","ts":1,"args":{"Bytes":-4,"Device Id":0}}]`, "[OutOfMemory] of -4 Bytes"},
		"alloc twice":      {`[` + mem(1, 8, 1) + `,` + mem(2, 8, 1) + `]`, "traceEvents[1]: allocation of address 0x8, which traceEvents[0]"},
		"double free":      {`[` + mem(1, 8, 1) + `,` + mem(3, 8, -1) + `,` + mem(2, 8, -1) + `]`, "traceEvents[1]: double free of address 0x8, which traceEvents[2]"},
		"unknown address": {`[` + strings.Replace(mem(1, 4, 100), `"Addr"`, `"Total Allocated":300,"Addr"`, 1) + `,` + total + `]`,
			"traceEvents[1]: free of address 0x8, which was never allocated: only 200 more bytes"},
		"less than nothing": {`[` + strings.Replace(mem(1, 4, 100), `"Addr"`, `"Total Allocated":30,"Addr"`, 1) + `]`, "less than nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "kineto: ") {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A cut file is an error wherever it is cut, a file with a flipped bit is an
// error or still a trace.
func TestDamaged(t *testing.T) {
	file := bytes.TrimSpace(sample(t, "devices.json"))
	for n := range file {
		if _, err := Read(bytes.NewReader(file[:n])); err == nil {
			t.Fatalf("cut after %d bytes: no error", n)
		}
		bad := bytes.Clone(file)
		bad[n] ^= 1 << (n % 8)
		if tr, err := Read(bytes.NewReader(bad)); err == nil {
			checkTrace(t, tr)
		}
	}
}

func TestNanoseconds(t *testing.T) {
	for us, want := range map[string]int64{
		"0": 0, "1": 1000, "4374588898647.118": 4374588898647118, "0.0004": 0, "0.0005": 1, "-0.0015": -2, "1.9999": 2000,
		"12.5e3": 12500000, "1e-3": 1, "1e-4": 0, "5e-4": 1, "9223372036854775.807": 1<<63 - 1, "1795231615180417.764": 1795231615180417764,
		"0e60": 0, "1E+2": 100000, "-7": -7000,
	} {
		if got, err := nanoseconds(us); got != want || err != nil {
			t.Errorf("nanoseconds(%s) = %d, %v, want %d", us, got, err, want)
		}
	}
	for _, us := range []string{"9223372036854775.808", "1e16", "1e999", "1e99999999999999999999", "92233720368547758070"} {
		if got, err := nanoseconds(us); err == nil {
			t.Errorf("nanoseconds(%s) = %d, want an error", us, got)
		}
	}
}

func TestDetect(t *testing.T) {
	for _, name := range []string{"devices.json", "last.json"} {
		if !Detect(sample(t, name)) {
			t.Errorf("%s is not detected", name)
		}
	}
	for _, s := range []string{"", "{}", "\x80\x04", "Thread,Time,Action", `{"hook":"alloc"}`} {
		if Detect([]byte(s)) {
			t.Errorf("%q is detected", s)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"devices.json", "last.json", "sync.json.gz"} {
		f.Add(sample(f, name))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if tr, err := Read(bytes.NewReader(file)); err == nil {
			checkTrace(t, tr)
		}
	})
}
