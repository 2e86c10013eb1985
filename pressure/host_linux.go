package pressure

import "os"

func hostMemory() (Info, error) { return linuxMemory(os.DirFS("/")) }

// HostStalls returns the share of the last 10 s, 0 to 1, in which a task of this process's control
// group, or of the machine where the group does not say, waited for memory: the kernel's pressure stall
// information (Linux, Documentation/accounting/psi.rst). Errors: a kernel without it.
func HostStalls() (float64, error) { return linuxStalls(os.DirFS("/")) }

func containerLimit() int64 { return linuxLimit(os.DirFS("/")) }
