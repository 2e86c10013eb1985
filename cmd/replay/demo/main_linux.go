// Demo runs a service twice, as it is and with the import of gc/auto, and draws the memory that it
// holds to demo.svg. The service decodes 2,000 pictures of 1 MiB. C has their pixels, and a finalizer
// frees them. Demo kills the service when it holds more than 100 MiB, as a container would.
package main

// #include <stdlib.h>
// #include <string.h>
import "C"

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"os/exec"
	"runtime"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	_ "github.com/eagergc/eagergc/gc/auto"
	"github.com/eagergc/eagergc/sim"
)

type picture struct{ pixels unsafe.Pointer }

func decode() *picture {
	p := &picture{C.malloc(1 << 20)}
	C.memset(p.pixels, 255, 1<<20)
	runtime.SetFinalizer(p, func(p *picture) { C.free(p.pixels) })
	return p
}

func main() {
	const service = "DEMO_SERVICE" // the variable that makes this program the service
	if os.Getenv(service) != "" {
		for range 2000 {
			runtime.KeepAlive(decode())
			time.Sleep(time.Millisecond)
		}
		return
	}
	program, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	var curves []chart.Curve
	for _, way := range [][2]string{{"as it is", "EAGERGC=off"}, {"with the import", "EAGERGC=on"}} {
		run := exec.Command(program)
		run.Env = append(os.Environ(), service+"=1", way[1])
		if err := run.Start(); err != nil {
			log.Fatal(err)
		}
		levels := watch(run.Process)
		_ = run.Wait() // its state is printed
		most, end := levels[len(levels)-1].Live, levels[len(levels)-1].At
		for _, l := range levels {
			most = max(most, l.Live)
		}
		fmt.Printf("%-16s %v after %.1f s; it held at most %d MiB\n", way[0]+":", run.ProcessState, end.Seconds(), most>>20)
		curves = append(curves, chart.Curve{Name: way[0], Levels: levels})
	}
	var svg bytes.Buffer
	if err := chart.Curves("Resident memory of a service", "killed above 100 MiB", curves).Write(&svg, "svg"); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("demo.svg", svg.Bytes(), 0o666); err != nil {
		log.Fatal(err)
	}
	fmt.Println("wrote demo.svg")
}

// watch reads the resident memory of a process every 2 ms until it ends.
func watch(p *os.Process) (levels []sim.Level) {
	begin := time.Now()
	for tick := time.Tick(2 * time.Millisecond); ; <-tick {
		var size, pages int64
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.Pid))
		_, _ = fmt.Sscan(string(text), &size, &pages)
		held := pages * int64(os.Getpagesize())
		levels = append(levels, sim.Level{At: time.Since(begin), Live: held})
		if held > 100<<20 {
			_ = p.Kill()
		} else if held == 0 && len(levels) > 1 { // it has ended
			return levels
		}
	}
}
