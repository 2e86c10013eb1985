package pressure

import "os"

func hostMemory() (Info, error) { return linuxMemory(os.DirFS("/")) }

// HostStalls reads the pressure stall information of this process's control
// group, or of the machine where the group has none. Errors: a kernel without it.
func HostStalls() (Stalls, error) { return linuxStalls(os.DirFS("/")) }

func containerLimit() int64 { return linuxLimit(os.DirFS("/")) }
