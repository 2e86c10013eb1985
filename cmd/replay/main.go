// Command replay runs recorded workloads under collection policies and compares
// them. `replay --help` is its manual.
package main

import "github.com/eagergc/eagergc/cmd/replay/command"

func main() { command.Main() }
