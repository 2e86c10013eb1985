package logs_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/logs"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

const head = "Thread,Time,Action,Pointer,Size,Stream\n"

func readRMM(t *testing.T, rows string) *trace.Trace {
	t.Helper()
	tr, err := logs.ReadRMM(strings.NewReader(head + rows))
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Validate(); err != nil {
		t.Fatal(err)
	}
	return tr
}

// text returns the events of tr, one a line.
func text(tr *trace.Trace) string {
	var b strings.Builder
	for _, e := range tr.Events {
		b.WriteString(recording.Text(tr, e) + "\n")
	}
	return b.String()
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, rows, want, clock string }{
		{"rows", `2342727,15:47:02.841961,allocate,0x10012400000,1048576,0
2342727,15:47:02.841977,free,0x10012400000,1048576,0
2342727,15:47:02.841980,allocate,0x10012400000,512,0x7f8a38001020
2342727,15:47:02.841990,allocate failure,(nil),11136000000,0x7f8a38001020
2342728,15:47:02.841990,allocate,(nil),0,0x2
`, `0 alloc id=1 bytes=1048576 space=device0
16000 drop id=1 bytes=1048576 space=device0
19000 alloc id=2 bytes=512 space=device0 stream=1
29000 refuse bytes=11136000000 space=device0 stream=1
`, "time of day, microseconds"},
		{"older times, over midnight", `1,23:59:59:999000,allocate,0x100,8,0
2,00:00:00:000500,allocate,0x200,8,0x1
1,23:59:59:999990,free,0x100,8,0
2,00:00:00:001000,free,0x200,8,0x1
`, `0 alloc id=1 bytes=8 space=device0
1500000 alloc id=2 bytes=8 space=device0
1500000 drop id=1 bytes=8 space=device0
2000000 drop id=2 bytes=8 space=device0
`, "time of day, microseconds"},
		{"seconds", "1,1634567890.123456,allocate,0x7f8a40000000,1024,0\r\n1,1634567890.223456,free,0x7f8a40000000,1024,0\r\n\r\n",
			"0 alloc id=1 bytes=1024 space=device0\n100000000 drop id=1 bytes=1024 space=device0\n", "wall clock, microseconds"},
		{"there before", "1,10:00:00.5,allocate,0x1,1,0\n1,10:00:01.0,free,0x2,7,0\n",
			"0 alloc id=2 bytes=7 space=device0\n0 alloc id=1 bytes=1 space=device0\n500000000 drop id=2 bytes=7 space=device0\n", "time of day, microseconds"},
	} {
		tr := readRMM(t, c.rows)
		if got := text(tr); got != c.want || tr.Meta["clock"] != c.clock {
			t.Errorf("%s: clock %q, got:\n%swant:\n%s", c.name, tr.Meta["clock"], got, c.want)
		}
	}
	if tr := readRMM(t, "1,1634567890.5,allocate,0x1,1,0\n"); !tr.Start.Equal(time.Unix(1634567890, 5e8)) {
		t.Errorf("start %v", tr.Start)
	}
	if tr := readRMM(t, "1,10:00:01,allocate,0x1,1,0\n2,10:00:00.5,free,0x1,1,0\n"); tr.Meta["clock_corrections"] != "1" || tr.Events[1].Time != 0 {
		t.Errorf("a thread that is late: %v %v", tr.Meta, tr.Events)
	}
	if tr := readRMM(t, "1,10:00:01,free,0x1,5,0\n"); tr.Meta["live_before_bytes"] != "5" || tr.Meta["live_before_objects"] != "1" {
		t.Errorf("there before: %v", tr.Meta)
	}
}

func TestRMMErrors(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"", "rmm: empty trace"},
		{head, "rmm: empty trace"},
		{"a,b\n", "rmm: line 1: no header"},
		{head + "1,10:00:00,allocate,0x1,1\n", "line 2: want the 6 fields"},
		{head + "1,10:00:00,allocate,0x1,1,0,0\n", "line 2: want the 6 fields"},
		{head + "1,10:00:00,malloc,0x1,1,0\n", `line 2: unknown Action "malloc"`},
		{head + "1,25:00:00,allocate,0x1,1,0\n", `line 2: column Time "25:00:00": want HH:MM:SS`},
		{head + "1,10:00,allocate,0x1,1,0\n", "line 2: column Time"},
		{head + "1,10:00:61,allocate,0x1,1,0\n", "line 2: column Time"},
		{head + "1,10:00:00,allocate,0x1,1,0\n1,5.5,free,0x1,1,0\n", "line 3: column Time \"5.5\": another form of time"},
		{head + "1,99999999999,allocate,0x1,1,0\n", "out of range"},
		{head + "1,10:00:00,allocate,pointer,1,0\n", "line 2: column Pointer"},
		{head + "1,10:00:00,allocate,0x1,-1,0\n", "line 2: column Size"},
		{head + "1,10:00:00,allocate,0x1,99999999999999999999,0\n", "line 2: column Size"},
		{head + "1,10:00:00,allocate,0x1,1,x\n", "line 2: column Stream"},
		{head + "1,10:00:00,allocate,0x1,1,0\n1,10:00:00,allocate,0x1,1,0\n", "line 3: allocation of address 0x1, which line 2 allocated"},
		{head + "1,10:00:00,allocate,0x1,1,0\n1,10:00:00,free,0x1,1,0\n1,10:00:00,free,0x1,1,0\n", "line 4: double free of address 0x1, which line 3 freed"},
		{head + "1,10:00:00,allocate,0x1,1,0\n1,10:00:00,free,0x1,2,0\n", "line 3: free of 2 bytes at address 0x1, where line 2 allocated 1"},
		{head + "1,10:00:02,allocate,0x1,1,0\n1,10:00:00,free,0x1,1,0\n", "line 3: time goes backwards"},
		{head + "1,10:00:00,allocate,0x1,4611686018427387903,0\n1,10:00:00,allocate,0x2,2,0\n", "line 3: the sizes so far add up"},
		{head + strings.Repeat("x", 2<<20), "line 2: bufio.Scanner: token too long"},
	} {
		if _, err := logs.ReadRMM(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: error %v, want %q", c.file, err, c.want)
		}
	}
}

func TestDetectRMM(t *testing.T) {
	if !logs.DetectRMM([]byte("\ufeff"+head)) || logs.DetectRMM([]byte("id,lower,upper,size\n")) {
		t.Error("Detect")
	}
}

func FuzzReadRMM(f *testing.F) {
	f.Add([]byte(head + "1,23:59:59.9,allocate,0x100,8,0x2\n2,00:00:00.1,free,0x100,8,0\n1,00:00:01,allocate failure,(nil),9,0\n"))
	f.Add([]byte(head + "1,1634567890.5,free,0x1,1,0\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		tr, err := logs.ReadRMM(bytes.NewReader(file))
		if err == nil {
			err = tr.Validate()
		} else if strings.HasPrefix(err.Error(), "rmm: ") {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}
