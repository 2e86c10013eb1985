package kineto

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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
	return b
}

func mustRead(tb testing.TB, file []byte) *trace.Trace {
	tb.Helper()
	t, err := Read(bytes.NewReader(file))
	if err != nil {
		tb.Fatal(err)
	}
	if err := t.Validate(); err != nil {
		tb.Fatal(err)
	}
	return t
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
	if want := map[string]string{"source": "PyTorch profiler (Kineto), Chrome trace", "clock": "wall clock, ns", "entries": "8", "cpu_memory_events_left_out": "1",
		"live_before_objects": "1", "live_before_bytes": "200"}; !maps.Equal(tr.Meta, want) {
		t.Errorf("Meta = %v, want %v", tr.Meta, want)
	}
}

func TestListForm(t *testing.T) {
	tr := mustRead(t, []byte(`[{"ph":"X","name":"cudaStreamSynchronize","ts":5,"dur":1}, {"ph":"X","name":"cudaStreamSynchronize","ts":"?","ts":7.25,"dur":2e0}]`))
	checkEvents(t, tr,
		`0 sync space=device0 duration=1000`,
		`2250 sync space=device0 duration=2000`,
	)
	if !tr.Start.IsZero() || !strings.HasPrefix(tr.Meta["clock"], "of the profiler") {
		t.Errorf("Start = %v from a clock that does not count from 1970, %v", tr.Start, tr.Meta)
	}
	rest := strings.Replace(mem(1, 4, 100), `"Addr"`, `"Total Allocated":300,"Addr"`, 1) // what nothing frees is one object
	checkEvents(t, mustRead(t, []byte(`[`+rest+`]`)), "0 alloc id=2 bytes=200 space=device0", "0 alloc id=1 bytes=100 space=device0")
	if tr = mustRead(t, []byte(`[`+mem(1.7e15, 2, 5)+`]`)); !tr.Start.Equal(gotime.Unix(1.7e9, 0)) { // without a base, but from 1970
		t.Errorf("Start = %v", tr.Start)
	}
}

// mem is a [memory] event.
func mem(ts float64, addr uint64, bytes int64) string {
	return fmt.Sprintf(`{"name":"[memory]","ph":"i","ts":%v,"args":{"Addr":%d,"Bytes":%d,"Device Id":0,"Device Type":1}}`, ts, addr, bytes)
}

func TestBadInput(t *testing.T) {
	total := strings.Replace(mem(2, 8, -300), `"Addr"`, `"Total Allocated":100,"Addr"`, 1)
	for _, c := range []struct{ file, want string }{
		{"", "byte 0: unexpected EOF"},
		{`{"a":[1,2.5e-3,true,null,{"b":"c"}]}`, "no traceEvents"},
		{`{"traceEvents":[]}`, "empty trace"},
		{`{"traceEvents":[{"name":"x","ph":"X","ts":1}]}`, "empty trace: none of 1 events"},
		{`{"traceEvents":[],"traceEvents":[]}`, "a second traceEvents"},
		{`[5]`, "empty trace: none of 1 events"},
		{`[{"name":"[mem`, "byte 14: unexpected EOF"},
		{`[` + mem(1, 1, 1) + `] x`, "invalid character 'x'"},
		{`{"baseTimeNanoseconds":-1,"traceEvents":[]}`, "baseTimeNanoseconds is no time"},
		{`[{"name":"[memory]","ts":1,"args":{"Device Id":0,"Addr":1}}]`, `traceEvents[0]: no integer "Bytes"`},
		{`[{"name":"[memory]","ts":1,"args":{"Device Id":0,"Bytes":1}}]`, `no integer "Addr"`},
		{`[{"name":"[memory]","ts":1,"args":{"Bytes":1,"Addr":1}}]`, `no integer "Device Id"`},
		{`[{"name":"[memory]","args":{"Bytes":1,"Addr":1,"Device Id":0}}]`, "[memory] has no ts"},
		{`[{"name":"cudaStreamSynchronize","ph":"X","dur":1,"ts":1e30}]`, "ts of cudaStreamSynchronize is out of range"},
		{`[{"name":"cudaStreamSynchronize","ph":"X","dur":-1,"ts":1}]`, "dur of cudaStreamSynchronize is negative"},
		{`[{"name":"cudaStreamSynchronize","ph":"X","ts":1}]`, "has no dur"},
		{`[{"name":"cudaStreamSynchronize","ph":"X","ts":-1,"dur":1}]`, "traceEvents[0]: time before 1970"},
		{`[` + mem(1, 1, 0) + `]`, "traceEvents[0]: [memory] of 0 Bytes"},
		{`[` + mem(1, 1, 1<<62) + `]`, "Bytes 4611686018427387904 is not in"},
		{`[{"name":"[memory]","ts":1,"args":{"Bytes":99999999999999999999,"Addr":1,"Device Id":0}}]`, "Bytes is beyond 64 bits"},
		{`[` + mem(1, 1, 1<<62-1) + `,` + mem(2, 2, 1) + `]`, "traceEvents[1]: the sizes so far add up"},
		{`[{"name":"[OutOfMemory]","ts":1,"args":{"Bytes":-4,"Device Id":0}}]`, "[OutOfMemory] of -4 Bytes"},
		{`[` + mem(1, 8, 1) + `,` + mem(2, 8, 1) + `]`, "traceEvents[1]: allocation of address 0x8, which traceEvents[0]"},
		{`[` + mem(1, 8, 1) + `,` + mem(3, 8, -1) + `,` + mem(2, 8, -1) + `]`, "traceEvents[1]: double free of address 0x8, which traceEvents[2]"},
		{`[` + strings.Replace(mem(1, 4, 100), `"Addr"`, `"Total Allocated":300,"Addr"`, 1) + `,` + total + `]`,
			"traceEvents[1]: free of address 0x8, which was never allocated: only 200 more bytes"},
		{`[` + strings.Replace(mem(1, 4, 100), `"Addr"`, `"Total Allocated":30,"Addr"`, 1) + `]`, "less than nothing"},
		{`[` + strings.Replace(mem(1, 4, -5), `"Addr"`, `"Total Allocated":0,"Addr"`, 1) + `,` + mem(2, 8, -5) + `]`, "only 0 more bytes were live before"},
	} {
		_, err := Read(strings.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "kineto: ") {
			t.Errorf("%.90q: got error %v, want one with %q", c.file, err, c.want)
		}
	}
}

// TestLongValue: a value is read up to its bound, and a file of many values may have any length.
func TestLongValue(t *testing.T) {
	for n, ok := range map[int]bool{maxValue / 2: true, 2 * maxValue: false} {
		value := `,{"name":"` + strings.Repeat("x", n) + `"}`
		file := io.MultiReader(strings.NewReader(`[{"name":"cudaStreamSynchronize","ph":"X","ts":5,"dur":1}`),
			strings.NewReader(value), strings.NewReader(value), strings.NewReader(value), strings.NewReader("]"))
		if _, err := Read(file); ok != (err == nil) || !ok && !errors.Is(err, errValue) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestNanoseconds(t *testing.T) {
	for us, want := range map[string]int64{
		"0": 0, "1": 1000, "4374588898647.118": 4374588898647118, "0.0004": 0, "0.0005": 1, "-0.0015": -2, "1.9999": 2000,
		"12.5e3": 12500000, "1e-3": 1, "1e-4": 0, "5e-4": 1, "1795231615180417.764": 1795231615180417764,
		"0e60": 0, "1E+2": 100000, "-7": -7000,
	} {
		if got, err := nanoseconds(us); got != want || err != nil {
			t.Errorf("nanoseconds(%s) = %d, %v, want %d", us, got, err, want)
		}
	}
	for _, us := range []string{"2305843009213694.1", "1e16", "1e999", "1e99999999999999999999", "92233720368547758070"} {
		if got, err := nanoseconds(us); err == nil {
			t.Errorf("nanoseconds(%s) = %d, want an error", us, got)
		}
	}
}

func TestDetect(t *testing.T) {
	for _, name := range []string{"devices.json", "last.json"} {
		if !Detect(append([]byte(" \t\r\n"), sample(t, name)...)) {
			t.Errorf("%s is not detected", name)
		}
	}
	for _, s := range []string{"", "{}", "\x80\x04", "Thread,Time,Action", `{"hook":"alloc"}`} {
		if Detect([]byte(s)) {
			t.Errorf("%q is detected", s)
		}
	}
}

// profileOf is a profile of launches, jobs and waits: "launch id at", "job id from to"
// and "wait from to", in us.
func profileOf(lines ...string) string {
	var events []string
	for _, line := range lines {
		var id, from, to int
		switch {
		case scan(line, "launch %d %d", &id, &from):
			events = append(events, fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","tid":1,"ts":%d,"dur":1,"args":{"correlation":%d}}`, from, id))
		case scan(line, "job %d %d %d", &id, &from, &to):
			events = append(events, fmt.Sprintf(`{"args":{"stream":7,"correlation":%d},"ph":"X","cat":"kernel","name":"k","tid":7,"ts":%d,"dur":%d}`, id, from, to-from))
		case scan(line, "wait %d %d", &from, &to):
			events = append(events, fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","tid":1,"ts":%d,"dur":%d,"args":{"correlation":99}}`, from, to-from))
		default:
			panic(line)
		}
	}
	return `{"schemaVersion":1,"traceEvents":[` + strings.Join(events, ",") + `]}`
}

func scan(line, form string, to ...any) bool {
	n, err := fmt.Sscanf(line, form, to...)
	return err == nil && n == len(to)
}

// How far the device is ahead: five jobs are queued one after the other, each for
// longer than the one before it. A launch takes 10 us.
func TestHowFarTheDeviceIsAhead(t *testing.T) {
	lines := []string{
		"wait 0 1", "launch 1 100", "launch 2 120", "launch 3 140", "wait 160 510",
		"job 1 110 210", // begins as soon as it is launched: nothing before it is absorbed
		"job 2 210 310", // was queued for 80 us
		"job 3 310 500", // was queued for 160 us
		// The device idles from 700 to 800, since launch 5 comes late: it absorbs nothing, nor do the jobs before it.
		"launch 4 600", "job 4 610 700", "launch 5 790", "wait 795 900", "job 5 800 890",
		// No wait is for this launch.
		"launch 6 950", "job 6 960 2000", "wait 1000 1001",
		// The clocks differ: it is not known when this job was launched.
		"launch 7 3000", "job 7 2990 3100", "wait 3010 3200",
		// The device idles from 4200 to 4310, since job 10 waits for something else: job 9 delays the end by what is beyond that.
		"launch 8 4050", "job 8 4060 4110", "launch 9 4100", "job 9 4110 4200", "launch 10 4150", "job 10 4310 4500", "wait 4250 4500",
		// Two jobs of one launch: the second one was queued for 10 us.
		"launch 11 5000", "job 11 5010 5020", "job 11 5020 5100", "wait 5010 5200",
		// Two streams: job 12 begins last though it is launched first, and absorbs nothing.
		"launch 12 6000", "launch 13 6010", "job 13 6020 6100", "job 12 6050 6200", "wait 6030 6300",
	}
	for range 2 {
		tr := mustRead(t, []byte(profileOf(lines...)))
		var got []string
		for _, e := range tr.Events {
			if e.Kind == trace.Mark && tr.Label(e) == trace.AheadLabel {
				got = append(got, fmt.Sprintf("%d: %v", e.Time/1000, e.Duration))
			}
		}
		if text := strings.Join(got, ", "); text != "100: 0s, 100: 80µs, 120: 160µs, 140: 350µs, 790: 105µs, 4050: 110µs, 4100: 150µs, 4150: 250µs, 5000: 10µs, 5000: 190µs, 6010: 270µs" {
			t.Errorf("%s", text)
		}
		slices.Reverse(lines) // a file need not be in order
	}
	checkEvents(t, mustRead(t, []byte(profileOf("launch 1 100", "wait 160 510"))), `0 sync space=device0 duration=350000 stream=1`) // without jobs nothing is known
}

// TestCopiesToTheHost: a copy holds the program if the call is synchronous or the memory of the host is pageable.
func TestCopiesToTheHost(t *testing.T) {
	var events []string
	for i, c := range []struct{ call, job string }{
		{"cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)"},
		{"cudaMemcpyAsync", "Memcpy DtoH (Device -> Pinned)"},
		{"cudaMemcpy", "Memcpy DtoH (Device -> Pinned)"},
		{"hipMemcpyWithStream", "Memcpy DtoH (Device -> Host)"},
		{"cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)"},
		{"cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)"},
	} {
		events = append(events,
			fmt.Sprintf(`{"ph":"X","cat":"gpu_memcpy","name":%q,"tid":7,"ts":%d,"dur":5,"args":{"correlation":%d}}`, c.job, 100*i+60, i),
			fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":%q,"tid":%d,"ts":%d,"dur":70,"args":{"correlation":%d}}`, c.call, i, 100*i, i))
	}
	var waits []string
	tr := mustRead(t, []byte("["+strings.Join(events, ",")+"]"))
	for _, e := range tr.Events {
		if e.Kind == trace.Sync {
			waits = append(waits, recording.Text(tr, e))
		}
	}
	want := []string{"0 sync space=device0 duration=70000", "200000 sync space=device0 duration=70000 stream=2", "300000 sync space=device0 duration=70000 stream=3"}
	if !slices.Equal(waits, want) {
		t.Errorf("waits %q, want %q", waits, want)
	}
}

// TestDrawnProfiles: another digest means that a trace or an error differs. To see which, print each text before and after the change.
func TestDrawnProfiles(t *testing.T) {
	r, sum := rand.New(rand.NewPCG(1, 0)), sha256.New()
	pick := func(list string) string { all := strings.Split(list, ","); return all[r.IntN(len(all))] }
	for range 600 {
		var events []string
		var live []int
		devices, first, total := 1+r.IntN(3), r.IntN(2), pick(",Total Allocated")
		for i := range 40 {
			name := pick("[memory],[memory],[memory],[OutOfMemory],k,k,k,k,k,k,k,k,k,k,cudaStreamSynchronize,cudaDeviceSynchronize,cudaEventSynchronize,hipStreamSynchronize,hipDeviceSynchronize,hipEventSynchronize")
			addr, bytes, at := i, 1+r.IntN(900), 8*i+r.IntN(60)
			if name == "[memory]" {
				at = 8 * i
				if n := len(live); r.IntN(6) == 0 {
					bytes = -bytes // was there before
				} else if n > 0 && r.IntN(2) == 0 {
					addr, bytes, live = live[n-1], -bytes, live[:n-1]
				} else {
					live = append(live, addr)
				}
			}
			events = append(events, fmt.Sprintf(`{"ph":%q,"cat":%q,"name":%q,"tid":%d,"ts":%d,%q:%d,"args":{%q:%d,"Device Id":%d,"Device Type":%s,"Addr":%d,"Bytes":%d,"Total Reserved":%d,%q:99999}}`,
				pick("X,X,X,i"), pick("user_annotation,cuda_runtime,cuda_runtime,cuda_driver,hip_runtime,hip_driver,kernel,kernel,kernel,gpu_memcpy,gpu_memset,cpu"), name, r.IntN(3), at, []string{"dur", "x"}[r.IntN(99)/98], r.IntN(60)*(1+r.IntN(2)*9),
				pick("correlation,correlation,correlation,x"), r.IntN(9), first+addr%devices, pick("1,1,1,1,1,1,1,0"), uint64(addr)<<58, bytes, r.IntN(3)<<20, total))
		}
		tr, err := Read(strings.NewReader("[" + strings.Join(events, ",") + "]"))
		if fmt.Fprintln(sum, err); err == nil {
			fmt.Fprintln(sum, tr.Meta, recording.WriteText(sum, tr))
		}
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); got != "237bc81277b6e611" {
		t.Errorf("digest %s", got)
	}
}
