package pressure

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// root is a Linux file system whose machine has 8 of 16 MiB left: the control groups of this process, and files "path=text" below
// sys/fs/cgroup, or from the root if they begin with a slash. A comma in a text is the end of a line.
func root(groups, files string) fstest.MapFS {
	f := fstest.MapFS{
		"proc/meminfo":     {Data: []byte("MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    8192 kB\n")},
		"proc/self/cgroup": {Data: []byte(strings.ReplaceAll(groups, ",", "\n"))},
	}
	for _, file := range strings.Split(files, "; ") {
		if name, text, ok := strings.Cut(file, "="); ok {
			if name, ok = strings.CutPrefix(name, "/"); !ok {
				name = "sys/fs/cgroup/" + name
			}
			f[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, ",", "\n") + "\n")}
		}
	}
	return f
}

// TestLinuxMemory: the least limit of the groups that this process is in, and what the fullest leaves.
func TestLinuxMemory(t *testing.T) {
	const none = 16 << 20 // no limit: the machine's
	for name, c := range map[string]struct {
		groups, files string
		free, total   int64
	}{
		"machine":                         {"", "", 8 << 20, none},
		"version 2":                       {"0::/a/b", "a/b/memory.max=4194304; a/b/memory.current=2097152; a/b/memory.stat=anon 1,inactive_file 1048576; a/memory.max=max; a/b/memory.min=0", 3 << 20, 4 << 20},
		"the parent is tighter":           {"0::/a/b", "a/b/memory.max=max; a/memory.max=1048576; a/memory.current=1048000", 576, 1 << 20},
		"slowed down before its limit":    {"0::/a/b", "a/b/memory.max=4194304; a/memory.high=2097152; a/memory.max=max; a/memory.current=1048576", 1 << 20, 2 << 20},
		"the slower one is no less":       {"0::/", "memory.max=2097152; memory.high=4194304; memory.current=1048576", 1 << 20, 2 << 20},
		"it does not say what it uses":    {"0::/", "memory.max=4194304; memory.stat=inactive_file 1048576", 4 << 20, 4 << 20},
		"the machine has less left":       {"0::/", "memory.max=12582912; memory.current=1048576", 8 << 20, 12 << 20},
		"limits that are none":            {"0::/a/b", "a/b/memory.max=0; a/memory.max=-5; memory.max=4611686018427387903", 8 << 20, none},
		"limit above the machine":         {"0::/", "memory.max=33554432; memory.current=0", 8 << 20, none},
		"over its limit":                  {"0::/", "memory.max=1024; memory.current=4096", 0, 1024},
		"beside others of version 1":      {"no group,12:pids:/p,1:name=systemd:/s,0::/a:b/../c", "c/memory.max=4194304; c/memory.current=1048576; memory/p/memory.max=1; c/memory.limit_in_bytes=1; a:b/c/memory.max=1; c/memory.stat=total_inactive_file 1,inactive_file many; pids/p/memory.max=1", 3 << 20, 4 << 20},
		"nearest full, above smaller":     {"0::/a/b/c", "a/b/c/memory.max=6291456; a/b/memory.max=4194304; a/memory.max=5242880; a/b/c/memory.stat=inactive_file 10; a/b/c/memory.current=6291000; a/b/memory.current=1", 466, 4 << 20},
		"version 1":                       {"5:cpu,4:memory:/job", "memory/job/memory.limit_in_bytes=2097152; memory/job/memory.usage_in_bytes=1048576; memory/job/memory.stat=total_inactive_file 524288; memory/memory.limit_in_bytes=9223372036854771712; memory/memory.usage_in_bytes=1; memory/job/memory.max=1; memory/job/memory.max_usage_bytes=1", 3 << 19, 2 << 20},
		"another controller of version 1": {"3:memoryx:/x", "memory/x/memory.limit_in_bytes=1", 8 << 20, none},
	} {
		files := root(c.groups, c.files)
		if got, err := linuxMemory(files); err != nil || got != (Info{c.free, c.total}) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c)
		}
		limit := c.total
		if limit == none && name != "limit above the machine" {
			limit = 0
		} else if name == "limit above the machine" {
			limit = 32 << 20
		}
		if got := linuxLimit(files); got != limit {
			t.Errorf("%s: container limit %d, want %d", name, got, limit)
		}
	}
	listed := root("", "memory/job/memory.limit_in_bytes=7")
	listed["proc/self/cgroup"].Data = []byte("4:cpu,memory,blkio:/job\n")
	if got := linuxLimit(listed); got != 7 {
		t.Errorf("a controller among others: %d", got)
	}
	for _, text := range []string{"", "MemTotal: 1 kB\n", "MemAvailable: 1 kB\n", "MemTotal: many\nMemAvailable: 1 kB\n", "MemTotal:\nMemAvailable: 1 kB\n"} {
		info, err := linuxMemory(fstest.MapFS{"proc/meminfo": {Data: []byte(text)}})
		if err == nil || err.Error() != "pressure: host memory: proc/meminfo lacks MemTotal or MemAvailable" || info != (Info{}) {
			t.Errorf("meminfo %q: %+v, %v", text, info, err)
		}
	}
	if info, err := HostMemory(); err == nil && (info.Total < 1<<26 || info.Free < 0 || info.Free > info.Total) {
		t.Errorf("this machine: %+v", info)
	}
}

// TestLinuxStalls: of the nearest group that says them, else of the machine.
func TestLinuxStalls(t *testing.T) {
	const text = "some avg10=1.50 avg60=0.25 avg300=0.00 total=2500,full avg10=0.50 avg60=0.00 avg300=0.00 total=1000"
	for _, f := range []fstest.MapFS{
		root("", "/proc/pressure/memory="+text), root("", "/proc/pressure/memory=full avg10=0.50 avg60=0.00 avg300=0.00 total=1000,"+text),
		root("0::/a/b", "a/memory.pressure="+text+"; memory.pressure=wrong"), root("0::/a/b", "/proc/pressure/memory="+text), root("0::/a", "a/memory.pressure="+text+"; /proc/pressure/memory=wrong"),
	} {
		if got, err := linuxStalls(f); err != nil || got != 0.015 {
			t.Errorf("%v, %v", got, err)
		}
	}
	for _, bad := range []string{"", "some avg10=x", "full avg10=0 avg60=0 avg300=0 total=0"} {
		got, err := linuxStalls(root("", "/proc/pressure/memory="+bad))
		if err == nil || got != 0 || err.Error() != fmt.Sprintf(`pressure: stall information: no line "some" in %q`, bad+"\n") {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

// TestAHostThatSaysNothing: the error names the file or the line, and nothing is made up.
func TestAHostThatSaysNothing(t *testing.T) {
	none := fstest.MapFS{}
	if info, err := linuxMemory(none); !errors.Is(err, fs.ErrNotExist) || info != (Info{}) || !strings.Contains(err.Error(), "proc/meminfo") {
		t.Errorf("memory %+v, %v", info, err)
	}
	if s, err := linuxStalls(none); !errors.Is(err, fs.ErrNotExist) || s != 0 || !strings.Contains(err.Error(), "proc/pressure/memory") {
		t.Errorf("stalls %v, %v", s, err)
	}
	if got, err := parseStatm("765 410 382 5 0 123 0\n", 4096); err != nil || got != (Resident{Anonymous: 28 * 4096, Mapped: 382 * 4096}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "1 2", "1 x 3", "1 2 x"} {
		if r, err := parseStatm(bad, 4096); err == nil || r != (Resident{}) || !strings.HasPrefix(err.Error(), "pressure: resident memory: ") {
			t.Errorf("%q: %+v, %v", bad, r, err)
		}
	}
}
