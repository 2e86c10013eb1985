package pressure

import "os"

func hostMemory() (Info, error) { return linuxMemory(os.DirFS("/")) }

// HostStalls returns the share of the last 10 s, 0 to 1, in which a task waited for memory. It is
// the kernel's pressure stall information (Linux, Documentation/accounting/psi.rst) for this
// process's control group, or for the machine if the group has none. It fails on a kernel without
// that information.
func HostStalls() (float64, error) { return linuxStalls(os.DirFS("/")) }

func containerLimit() int64 { return linuxLimit(os.DirFS("/")) }
