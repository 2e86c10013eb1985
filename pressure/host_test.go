package pressure

import (
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
	for want, group := range map[int64]string{0: "max\n", 4096: "4096\n"} {
		root := files(map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": group})
		if got := linuxLimit(root); got != want {
			t.Errorf("container limit %q: %d, want %d", group, got, want)
		}
	}
	if _, err := linuxMemory(fstest.MapFS{}); err == nil {
		t.Error("no error without meminfo")
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
		{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.pressure": text, "proc/pressure/memory": "wrong"},
	} {
		if got, err := linuxStalls(files(f)); err != nil || got != want {
			t.Errorf("%v, %v", got, err)
		}
	}
	for _, bad := range []string{"", "some avg10=x\n", "full avg10=0 avg60=0 avg300=0 total=0\n"} {
		if _, err := linuxStalls(files(map[string]string{"proc/pressure/memory": bad})); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}
