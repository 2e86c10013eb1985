package pressure

import (
	"fmt"
	"runtime"
	"testing"
	"testing/fstest"
)

func files(m map[string]string) fstest.MapFS {
	f := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    8192 kB\n")}}
	for name, text := range m {
		f[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return f
}

func TestLinuxMemory(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  Info
	}{
		"machine": {nil, Info{Free: 8 << 20, Total: 16 << 20}},
		"version 2": {map[string]string{
			"proc/self/cgroup":                   "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":       "4194304\n",
			"sys/fs/cgroup/a/b/memory.current":   "2097152\n",
			"sys/fs/cgroup/a/b/memory.stat":      "anon 1\ninactive_file 1048576\n",
			"sys/fs/cgroup/a/memory.max":         "max\n",
			"sys/fs/cgroup/a/b/memory.swap.max":  "max\n",
			"sys/fs/cgroup/cgroup.controllers":   "memory\n",
			"sys/fs/cgroup/a/b/memory.min":       "0\n",
			"sys/fs/cgroup/a/b/memory.oom.group": "0\n",
		}, Info{Free: 3 << 20, Total: 4 << 20}},
		"version 2, the parent is tighter": {map[string]string{
			"proc/self/cgroup":               "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":   "max\n",
			"sys/fs/cgroup/a/memory.max":     "1048576\n",
			"sys/fs/cgroup/a/memory.current": "1048000\n",
		}, Info{Free: 576, Total: 1 << 20}},
		"version 2, slowed down before its limit": {map[string]string{
			"proc/self/cgroup":               "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":   "4194304\n",
			"sys/fs/cgroup/a/memory.high":    "2097152\n",
			"sys/fs/cgroup/a/memory.max":     "max\n",
			"sys/fs/cgroup/a/memory.current": "1048576\n",
		}, Info{Free: 1 << 20, Total: 2 << 20}},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/job\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes":  "2097152\n",
			"sys/fs/cgroup/memory/job/memory.usage_in_bytes":  "1048576\n",
			"sys/fs/cgroup/memory/job/memory.stat":            "total_inactive_file 524288\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":      "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes":      "1\n",
			"sys/fs/cgroup/cpu,cpuacct/x/memory.max":          "1\n",
			"sys/fs/cgroup/memory/job/memory.max_usage_bytes": "1\n",
		}, Info{Free: 3 << 19, Total: 2 << 20}},
		"version 2, the slower one is no less": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "2097152\n",
			"sys/fs/cgroup/memory.high":    "4194304\n",
			"sys/fs/cgroup/memory.current": "1048576\n",
		}, Info{Free: 1 << 20, Total: 2 << 20}},
		"version 2, beside others of version 1": {map[string]string{
			"proc/self/cgroup":                       "no group\n12:pids:/p\n1:name=systemd:/s\n0::/a:b/../c\n",
			"sys/fs/cgroup/c/memory.max":             "4194304\n",
			"sys/fs/cgroup/c/memory.current":         "1048576\n",
			"sys/fs/cgroup/memory/p/memory.max":      "1\n",
			"sys/fs/cgroup/memory.limit_in_bytes":    "1\n",
			"sys/fs/cgroup/c/memory.limit_in_bytes":  "1\n",
			"sys/fs/cgroup/c/memory.usage_in_bytes":  "1\n",
			"sys/fs/cgroup/memory/s/memory.max":      "1\n",
			"sys/fs/cgroup/memory/memory.max":        "1\n",
			"sys/fs/cgroup/a:b/c/memory.max":         "1\n",
			"sys/fs/cgroup/memory/c/memory.max":      "1\n",
			"sys/fs/cgroup/c/memory.stat":            "total_inactive_file 1\ninactive_file many\n",
			"sys/fs/cgroup/pids/p/memory.max":        "1\n",
			"sys/fs/cgroup/c/memory.swap.current":    "1\n",
			"sys/fs/cgroup/c/memory.zswap.max":       "1\n",
			"sys/fs/cgroup/systemd/s/memory.max":     "1\n",
			"sys/fs/cgroup/unified/c/memory.max":     "1\n",
			"sys/fs/cgroup/memory/a/memory.current":  "1\n",
			"sys/fs/cgroup/c/memory.events":          "max 1\n",
			"sys/fs/cgroup/c/memory.peak":            "4194304\n",
			"sys/fs/cgroup/c/cgroup.subtree_control": "memory\n",
		}, Info{Free: 3 << 20, Total: 4 << 20}},
		"a group does not say what it uses": {map[string]string{
			"proc/self/cgroup":          "0::/\n",
			"sys/fs/cgroup/memory.max":  "4194304\n",
			"sys/fs/cgroup/memory.stat": "inactive_file 1048576\n",
		}, Info{Free: 4 << 20, Total: 4 << 20}},
		"the machine has less left than the group": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "12582912\n",
			"sys/fs/cgroup/memory.current": "1048576\n",
		}, Info{Free: 8 << 20, Total: 12 << 20}},
		"the nearest group is full, the one above is smaller": {map[string]string{
			"proc/self/cgroup":                   "0::/a/b/c\n",
			"sys/fs/cgroup/a/b/c/memory.max":     "6291456\n",
			"sys/fs/cgroup/a/b/memory.max":       "4194304\n",
			"sys/fs/cgroup/a/memory.max":         "5242880\n",
			"sys/fs/cgroup/a/b/c/memory.stat":    "inactive_file 10\n",
			"sys/fs/cgroup/a/b/c/memory.current": "6291000\n",
			"sys/fs/cgroup/a/b/memory.current":   "1\n",
		}, Info{Free: 466, Total: 4 << 20}},
		"version 1, memory in the middle": {map[string]string{
			"proc/self/cgroup": "4:cpu,memory,blkio:/job\n3:memoryx:/x\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "2097152\n",
			"sys/fs/cgroup/memory/job/memory.usage_in_bytes": "1048576\n",
			"sys/fs/cgroup/memory/job/memory.stat":           "inactive_file 524288\n",
			"sys/fs/cgroup/memory/job/memory.max":            "1\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes":   "1\n",
		}, Info{Free: 1 << 20, Total: 2 << 20}},
		"limits that are none": {map[string]string{
			"proc/self/cgroup":             "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "0\n",
			"sys/fs/cgroup/a/memory.max":   "-5\n",
			"sys/fs/cgroup/memory.max":     "4611686018427387903\n",
		}, Info{Free: 8 << 20, Total: 16 << 20}},
		"limit above the machine": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "33554432\n",
			"sys/fs/cgroup/memory.current": "0\n",
		}, Info{Free: 8 << 20, Total: 16 << 20}},
		"over its limit": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "1024\n",
			"sys/fs/cgroup/memory.current": "4096\n",
		}, Info{Free: 0, Total: 1024}},
	} {
		if got, err := linuxMemory(files(c.files)); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	for _, c := range []struct {
		group, above string
		want         int64
	}{{"max\n", "", 0}, {"4096\n", "", 4096}, {"4096\n", "8192\n", 4096}, {"8192\n", "4096\n", 4096}, {"max", "1099511627776", 1 << 40}} {
		root := files(map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": c.group, "sys/fs/cgroup/a/memory.max": c.above})
		if got := linuxLimit(root); got != c.want {
			t.Errorf("container limit %q below %q: %d, want %d", c.group, c.above, got, c.want)
		}
	}
	for _, text := range []string{"", "MemTotal: 1 kB\n", "MemAvailable: 1 kB\n", "MemTotal: many\nMemAvailable: 1 kB\n", "MemTotal:\nMemAvailable: 1 kB\n"} {
		info, err := linuxMemory(fstest.MapFS{"proc/meminfo": {Data: []byte(text)}})
		if err == nil || err.Error() != "pressure: host memory: proc/meminfo lacks MemTotal or MemAvailable" || info != (Info{}) {
			t.Errorf("meminfo %q: %+v, %v", text, info, err)
		}
	}
}

func TestHostMemoryOfThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("not known on " + runtime.GOOS)
	}
	info, err := HostMemory()
	if err != nil || info.Total < 1<<26 || info.Free < 0 || info.Free > info.Total {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestLinuxStalls(t *testing.T) {
	const text = "some avg10=1.50 avg60=0.25 avg300=0.00 total=2500\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=1000\n"
	const want = 0.015
	for _, f := range []map[string]string{
		{"proc/pressure/memory": text},
		{"proc/pressure/memory": "full avg10=0.50 avg60=0.00 avg300=0.00 total=1000\n" + text},
		{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.pressure": text, "sys/fs/cgroup/memory.pressure": "wrong"},
		{"proc/self/cgroup": "0::/a/b\n", "proc/pressure/memory": text},
		{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.pressure": text, "proc/pressure/memory": "wrong"},
	} {
		if got, err := linuxStalls(files(f)); err != nil || got != want {
			t.Errorf("%v, %v", got, err)
		}
	}
	for _, bad := range []string{"", "some avg10=x\n", "full avg10=0 avg60=0 avg300=0 total=0\n"} {
		got, err := linuxStalls(files(map[string]string{"proc/pressure/memory": bad}))
		if err == nil || got != 0 || err.Error() != fmt.Sprintf(`pressure: stall information: no line "some" in %q`, bad) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}
