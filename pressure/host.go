package pressure

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// HostMemory returns the memory that this process may use. The total is the smallest limit of its
// control groups and their parents, or else the machine's memory. The limits are memory.max and
// memory.high of version 2, above which the kernel slows a group down, and memory.limit_in_bytes of
// version 1. Free includes file cache that the kernel can reclaim. Limits may change while a
// program runs, so read them again now and then. HostMemory fails if the system does not tell.
func HostMemory() (Info, error) { return hostMemory() }

// ContainerLimit returns the smallest memory limit of the control groups of this process, in bytes,
// or 0 without one: see [HostMemory]. Outside Linux it returns 0.
func ContainerLimit() int64 { return containerLimit() }

func linuxLimit(root fs.FS) (least int64) {
	for _, g := range cgroups(root) {
		if limit, _, ok := g.read(root); ok && (least == 0 || limit < least) {
			least = limit
		}
	}
	return least
}

// linuxMemory is HostMemory over the root of a Linux file system.
func linuxMemory(root fs.FS) (Info, error) {
	machine, err := meminfo(root)
	if err != nil {
		return Info{}, fmt.Errorf("pressure: host memory: %w", err)
	}
	for _, g := range cgroups(root) {
		limit, used, ok := g.read(root)
		if ok && limit < machine.Total {
			machine.Total = limit
		}
		if ok {
			machine.Free = min(machine.Free, max(0, limit-used))
		}
	}
	return machine, nil
}

func meminfo(root fs.FS) (Info, error) {
	const file = "proc/meminfo"
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return Info{}, err
	}
	fields := keyed(text)
	total, okTotal := fields["MemTotal:"]
	free, okFree := fields["MemAvailable:"]
	if !okTotal || !okFree {
		return Info{}, errors.New(file + " lacks MemTotal or MemAvailable")
	}
	return Info{Free: free << 10, Total: total << 10}, nil
}

// A cgroup is one directory with a memory limit, and the names of its files.
type cgroup struct {
	dir          string
	limits       []string // the least counts
	usage, cache string
}

// cgroups lists the groups of this process and all above them, nearest first.
func cgroups(root fs.FS) (groups []cgroup) {
	text, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		g := cgroup{dir: "sys/fs/cgroup", limits: []string{"memory.max", "memory.high"}, usage: "memory.current", cache: "inactive_file"}
		if part[0] != "0" {
			if !strings.Contains(","+part[1]+",", ",memory,") {
				continue
			}
			g = cgroup{dir: "sys/fs/cgroup/memory", limits: []string{"memory.limit_in_bytes"}, usage: "memory.usage_in_bytes", cache: "total_inactive_file"}
		}
		mount := g.dir
		for at := path.Clean("/" + part[2]); ; at = path.Dir(at) {
			g.dir = path.Join(mount, at)
			groups = append(groups, g)
			if at == "/" {
				break
			}
		}
	}
	return groups
}

// read returns the group's limit and the bytes in use that cannot be reclaimed at once, or false if
// it has no limit.
func (g cgroup) read(root fs.FS) (limit, used int64, ok bool) {
	const none = math.MaxInt64 / 2 // "max" is no number; version 1 says a number above this
	limit = none
	for _, file := range g.limits {
		if n, err := number(root, path.Join(g.dir, file)); err == nil && n > 0 {
			limit = min(limit, n)
		}
	}
	if limit == none {
		return 0, 0, false
	}
	used, err := number(root, path.Join(g.dir, g.usage))
	if err != nil {
		return limit, 0, true
	}
	stat, _ := fs.ReadFile(root, path.Join(g.dir, "memory.stat"))
	return limit, used - keyed(stat)[g.cache], true
}

func number(root fs.FS, file string) (int64, error) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// keyed reads lines of a key and a number; what follows the number is skipped.
func keyed(text []byte) map[string]int64 {
	fields := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				fields[f[0]] = n
			}
		}
	}
	return fields
}

// Info is the size of a space, in bytes.
type Info struct {
	Free  int64 // bytes that could be taken now
	Total int64 // all of its bytes
}

// linuxStalls is HostStalls over the root of a Linux file system.
func linuxStalls(root fs.FS) (float64, error) {
	for _, g := range cgroups(root) {
		if text, err := fs.ReadFile(root, path.Join(g.dir, "memory.pressure")); err == nil {
			return parseStalls(string(text))
		}
	}
	text, err := fs.ReadFile(root, "proc/pressure/memory")
	if err != nil {
		return 0, fmt.Errorf("pressure: stall information: %w", err)
	}
	return parseStalls(string(text))
}

func parseStalls(text string) (share float64, err error) {
	for line := range strings.Lines(text) {
		if n, _ := fmt.Sscanf(line, "some avg10=%f ", &share); n == 1 {
			return share / 100, nil
		}
	}
	return 0, fmt.Errorf("pressure: stall information: no line \"some\" in %q", text)
}
