package logs_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/logs"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

const head = "Thread,Time,Action,Pointer,Size,Stream\n"

// sample returns a recording. CuPy 14.2 on one H200: three solves by conjugate gradients with sorts on a
// second stream (cg), and a few sums (stock). Heaptrack 1.4 of ls -R, of coreutils 9.1.
func sample(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(b)); err == nil {
			b, err = io.ReadAll(z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(t testing.TB, from func(io.Reader) (*trace.Trace, error), file []byte) (*trace.Trace, recording.Stats) {
	t.Helper()
	tr, err := from(bytes.NewReader(file))
	if err == nil {
		err = tr.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return tr, recording.StatsOf(tr)
}

func text(tr *trace.Trace) string {
	var b strings.Builder
	for _, e := range tr.Events {
		b.WriteString(recording.Text(tr, e) + "\n")
	}
	return b.String()
}

// digest is that of a trace. Another one means that something of it differs: print the text before and after the change.
func digest(tr *trace.Trace) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(text(tr), tr.Meta, tr.Start))))[:8]
}

func TestRecordedCuPy(t *testing.T) {
	tr, s := read(t, logs.ReadCuPy, sample(t, "cg.jsonl.gz"))
	stock, _ := read(t, logs.ReadCuPy, sample(t, "stock.jsonl.gz")) // without times, as CuPy's own DebugPrintHook writes it
	if got := digest(tr) + " " + digest(stock); got != "9aec510a 0dd4e0e2" || s.PeakReserved < s.PeakReachable || !stock.Start.IsZero() {
		t.Errorf("digests %s, %+v from %v, %v and %v", got, s, tr.Start, tr.Meta, stock.Meta)
	}
	two, _ := read(t, logs.ReadCuPy, []byte(`{"hook":"free","device_id":1,"mem_size":512,"mem_ptr":4096,"t_ns":5000}
{"hook":"free","mem_size":8,"mem_ptr":5000,"t_ns":5000}
{"hook":"malloc","mem_size":0,"mem_ptr":0,"t_ns":6000}
{"hook":"sync","name":"b","dur_ns":5,"t_ns":4500}
{"hook":"sync","name":"a","dur_ns":9,"t_ns":4000}`))
	if got := fmt.Sprint(text(two), two.Meta["live_before_bytes"]); got != "0 alloc id=1 bytes=512 space=device1\n0 alloc id=2 bytes=8 space=device0\n0 sync space=device0 duration=9 label=\"a\"\n500 sync space=device0 duration=5 label=\"b\"\n1000 drop id=1 bytes=512 space=device1\n1000 drop id=2 bytes=8 space=device0\n520" {
		t.Errorf("waits before all, on two devices: %q", got)
	}
}

// TestHeaptrack: a recording, and a small file of each kind of line.
func TestHeaptrack(t *testing.T) {
	tr, s := read(t, logs.ReadHeaptrack, sample(t, "ls.heaptrack.gz"))
	old, _ := read(t, logs.ReadHeaptrack, []byte("v 1 2\ns a b\ni 1 1 1\nt 1 0\na 8 1\n+ 0\n"))
	if got := digest(tr); got != "2f92002f" || old.Labels[1] != "a b" {
		t.Errorf("digest %s, %+v, %v; a text of version 2 is %q", got, s, tr.Meta, old.Labels)
	}
	tr, _ = read(t, logs.ReadHeaptrack, []byte("v 10400 3\nX a\x1b\ns 4 ma\tin\n"+`s 3 sub
s 3 a.c
s 2 in
i 10 1 1 3 7
i 20 1 4 0 0 2 3 9
i 30 1 63 0 0 0
t 1 0
t 2 1
t 0 2
t 3 3
a 10 2
a 8 9
a 0 4
c a
+ 2
+ 0
+ 1
+ 0
- 0
c e
- 0
- 1
c f
`))
	want := `10000000 alloc id=1 label="(no name)\n(no name)\nin\nsub\ta.c:9\nma in\ta.c:7"
10800000 alloc id=2 bytes=16 label="in\nsub\ta.c:9\nma in\ta.c:7"
11600000 alloc id=3 bytes=8
12400000 alloc id=4 bytes=16 label="in\nsub\ta.c:9\nma in\ta.c:7"
13200000 drop id=4 bytes=16
14000000 drop id=2 bytes=16
14500000 drop id=3 bytes=8
`
	if got := text(tr); got != want || tr.Meta["app"] != `a\x1b` {
		t.Errorf("%q, got:\n%swant:\n%s", tr.Meta["app"], got, want)
	}
}

func TestRMM(t *testing.T) {
	for _, c := range []struct{ name, rows, want, clock string }{
		{"rows", `2342727,15:47:02.841961,allocate,0x10012400000,1048576,0
2342727,15:47:02.841977,free,0x10012400000,1048576,0
2342727,15:47:02.841980,allocate,0x10012400000,512,0x7f8a38001020
2342727,15:47:02.841990,allocate failure,(nil),11136000000,0x7f8a38001020
2342728,15:47:02.841990,allocate,(nil),0,0x2
7, 15:47:02.841990 , free ,nullptr, 0 , 0X2
7,15:47:02.841991, allocate , 0XFF , 8 ,0x1
`, `0 alloc id=1 bytes=1048576 space=device0
16000 drop id=1 bytes=1048576 space=device0
19000 alloc id=2 bytes=512 space=device0 stream=1
29000 refuse bytes=11136000000 space=device0 stream=1
30000 alloc id=3 bytes=8 space=device0
`, "time of day, microseconds"},
		{"older times, over midnight", `1,23:59:59:999000,allocate,0x100,8,0
2,00:00:00:000500,allocate,0x200,8,0x1
1,23:59:59:999990,free,0x100,8,0
2,00:00:00:001000,free,0x200,8,0x1
2,11:00:00:000000,allocate,0x300,8,0
2,22:00:00:000000,free,0x300,8,0
2,00:00:00:000500,allocate,0x300,8,0
1,23:59:59:999990,free,0x300,8,0
`, `0 alloc id=1 bytes=8 space=device0
1500000 alloc id=2 bytes=8 space=device0
1500000 drop id=1 bytes=8 space=device0
2000000 drop id=2 bytes=8 space=device0
39600001000000 alloc id=3 bytes=8 space=device0
79200001000000 drop id=3 bytes=8 space=device0
86400001500000 alloc id=4 bytes=8 space=device0
86400001500000 drop id=4 bytes=8 space=device0
`, "time of day, microseconds"},
		{"a gap of more than half a day", "1,01:00:00,allocate,0x1,1,0\n1,14:00:00,free,0x1,1,0\n",
			"0 alloc id=1 bytes=1 space=device0\n46800000000000 drop id=1 bytes=1 space=device0\n", "time of day, microseconds"},
		{"seconds", "1,1634567890.123456,allocate,0x7f8a40000000,1024,0\r\n1,1634567890.223456,free,0x7f8a40000000,1024,0\r\n\r\n",
			"0 alloc id=1 bytes=1024 space=device0\n100000000 drop id=1 bytes=1024 space=device0\n", "wall clock, microseconds"},
		{"there before", "1,10:00:00.5,allocate,0x1,1,0\n1,10:00:01.0,free,0x2,7,0\n",
			"0 alloc id=2 bytes=7 space=device0\n0 alloc id=1 bytes=1 space=device0\n500000000 drop id=2 bytes=7 space=device0\n", "time of day, microseconds"},
	} {
		tr, _ := read(t, logs.ReadRMM, []byte(head+c.rows))
		if got := text(tr); got != c.want || tr.Meta["clock"] != c.clock || (tr.Meta["live_before_objects"] != "") != (c.name == "there before") {
			t.Errorf("%s: clock %q, got:\n%swant:\n%s", c.name, tr.Meta["clock"], got, c.want)
		}
	}
	if tr, _ := read(t, logs.ReadRMM, []byte(head+"1,1634567890.5,allocate,0x1,1,0\n")); !tr.Start.Equal(time.Unix(1634567890, 5e8)) {
		t.Errorf("start %v", tr.Start)
	}
	if tr, _ := read(t, logs.ReadRMM, []byte(head+"1,10:00:01,allocate,0x1,1,0\n2,10:00:00.5,free,0x1,1,0\n")); tr.Meta["clock_corrections"] != "1" || tr.Events[1].Time != 0 {
		t.Errorf("a thread that is late: %v %v", tr.Meta, tr.Events)
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	const malloc = `{"hook":"malloc","device_id":0,"size":8,"mem_size":512,"mem_ptr":4096,"t_ns":5000000000}` + "\n"
	const heap = "v 10400 3\na 10 0\n"
	const row = head + "1,10:00:00,allocate,0x1,1,0\n"
	for _, c := range []struct{ file, want string }{
		{"", "cupy: empty trace"},
		{"\n{", "cupy: line 2: unexpected end of JSON"},
		{`{"hook":"mmap"}`, `line 1: unknown hook "mmap"`},
		{`{"hook":"eagergc","version":2,"t_ns":1}`, "line 1: version 2"},
		{`{"hook":"malloc","mem_size":512}`, "line 1: malloc without mem_ptr"},
		{`{"hook":"malloc","device_id":253}`, "line 1: device_id 253"},
		{`{"hook":"malloc","mem_size":-512,"mem_ptr":1}`, "line 1: -512 bytes"},
		{`{"hook":"alloc","mem_size":4611686018427387904,"mem_ptr":1}`, "line 1: 4611686018427387904 bytes"},
		{`{"hook":"malloc","t_ns":-1}`, "line 1: t_ns -1 is out of range"},
		{`{"hook":"malloc","t_ns":4611686018427387905}`, "line 1: t_ns 4611686018427387905 is out"},
		{`{"hook":"sync"}`, "line 1: sync without t_ns"},
		{`{"hook":"sync","t_ns":1,"dur_ns":-1}`, "line 1: lasts -1 ns"},
		{malloc + `{"hook":"free","mem_size":1024,"mem_ptr":4096,"t_ns":5000000001}`, "line 2: free of 1024 bytes"},
		{malloc + `{"hook":"free","mem_size":511,"mem_ptr":4096,"t_ns":5000000001}`, "line 2: free of 511 bytes"},
		{malloc + `{"hook":"free","mem_size":512,"mem_ptr":4096}`, "line 2: some lines have t_ns"},
		{malloc + `{"hook":"free","mem_size":512,"mem_ptr":4096,"t_ns":3999999999}`, "line 2: time goes backwards"},
		{heap[:10], "heaptrack: empty trace"},
		{heap + "+ 1\n", "heaptrack: line 3: allocation 1 of 1"},
		{heap + "- 0\n", "line 3: free of allocation 0"},
		{heap + "+ x\n", "line 3: "},
		{heap + "i 1\n", "line 3: i with 1 numbers"},
		{heap + "c a\nc 9\n", "line 4: time goes backwards"},
		{heap + "a 4000000000000000 0\n", "line 3: 4611686018427387904 bytes"},
		{"v 1 2\na 3fffffffffffffff 0\n+ 0\n+ 0\n", "line 4: the sizes so far add up"},
		{head, "rmm: empty trace"},
		{head + "1,10:00:00,allocate,0x1,4611686018427387904,0\n", "line 2: column Size: strconv"},
		{head + "1,22:00:00,allocate,0x1,1,0\n1,10:00:00,free,0x1,1,0\n", "line 3: time goes backwards"},
		{head[1:], "rmm: line 1: no header"},
		{head + "1,10:00:00,allocate,0x1,1\n", "rmm: line 2: want the 6 fields"},
		{head + "1,10:00:00,allocate,0x1,1,0,7\n", "rmm: line 2: want the 6 fields"},
		{head + "1,10:00:00,malloc,0x1,1,0\n", `line 2: unknown Action "malloc"`},
		{head + "1,24:00:00,allocate,0x1,1,0\n", `line 2: column Time "24:00:00": want HH:MM:SS`},
		{row + "1,5.5,free,0x1,1,0\n", "line 3: column Time \"5.5\": another form of time"},
		{head + "1,99999999999,allocate,0x1,1,0\n", "line 2: column Time"},
		{head + "1,-5.5,allocate,0x1,1,0\n", "line 2: column Time \"-5.5\": before 1970"},
		{head + "1,10:00:00,allocate,0x1g,1,0\n", "line 2: column Pointer"},
		{head + "1,10:00:00,allocate,0x1,-1,0\n", "line 2: column Size"},
		{head + "1,10:00:00,allocate,0x1,1,x\n", "line 2: column Stream"},
		{row + "1,10:00:00,free,0x1,1,0\n1,10:00:00,free,0x1,1,0\n", "line 4: double free of address 0x1, which line 3 freed"},
		{row + "1,10:00:00,free,0x1,2,0\n", "line 3: free of 2 bytes at address 0x1, where line 2 allocated 1"},
		{row + "1,09:59:58.9,free,0x1,1,0\n", "line 3: time goes backwards"},
		{row + "1,10:00:00,allocate,0x2,4611686018427387903,0\n", "line 3: the sizes so far add up"},
		{head + strings.Repeat("x", 2<<20), "line 2: bufio.Scanner: token too long"},
	} {
		from := logs.ReadCuPy
		switch {
		case strings.HasPrefix(c.file, "v "):
			from = logs.ReadHeaptrack
		case strings.Contains(c.file, head[1:]):
			from = logs.ReadRMM
		}
		if _, err := from(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: error %v, want %q", c.file, err, c.want)
		}
	}
}

// TestDetect: each format knows the beginning of its own files, and of no other.
func TestDetect(t *testing.T) {
	detect := []func([]byte) bool{logs.DetectCuPy, logs.DetectHeaptrack, logs.DetectRMM}
	for i, files := range [][]string{
		{string(sample(t, "cg.jsonl.gz")[:99]), " \n{\"hook\":1}"}, {string(sample(t, "ls.heaptrack.gz")[:99]), "v 1 2\nX ls\n"}, {head, "\ufeff" + head},
		{"", "id,lower,upper,size\n", "v 1 2\nw 3\n", "{}\n\"hook\""},
	} {
		for _, file := range files {
			for k, d := range detect {
				if d([]byte(file)) != (k == i) {
					t.Errorf("%.40q: detector %d says %v", file, k, k != i)
				}
			}
		}
	}
}

// FuzzRead: what a reader takes is valid, and what it refuses is an error that begins with its name.
func FuzzRead(f *testing.F) {
	f.Add(uint8(0), sample(f, "stock.jsonl.gz"))
	f.Add(uint8(0), sample(f, "cg.jsonl.gz")[:4000])
	f.Add(uint8(1), sample(f, "ls.heaptrack.gz")[:3000])
	f.Add(uint8(2), []byte(head+"1,23:59:59.9,allocate,0x100,8,0x2\n2,00:00:00.1,free,0x100,8,0\n1,00:00:01,allocate failure,(nil),9,0\n"))
	f.Add(uint8(2), []byte(head+"1,1634567890.5,free,0x1,1,0\n"))
	f.Fuzz(func(t *testing.T, format uint8, file []byte) {
		format %= 3
		tr, err := []func(io.Reader) (*trace.Trace, error){logs.ReadCuPy, logs.ReadHeaptrack, logs.ReadRMM}[format](bytes.NewReader(file))
		if err == nil {
			err = tr.Validate()
		} else if strings.HasPrefix(err.Error(), []string{"cupy: ", "heaptrack: ", "rmm: "}[format]) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}
