package command

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bombs are small files that ask for much memory: a head, a repeated text, and the number of
// repetitions.
var bombs = map[string]struct {
	head, again string
	times       int
}{
	"text":   {"eagergc trace 1\n", "0 mark\n", 60_000_000},
	"pickle": {"\x80\x04K\x01", "\x94", 200_000_000},
	"rmm":    {"Thread,Time,Action,Pointer,Size,Stream\n", "1,00:00:00.000000,allocate,0x10,8,0\n1,00:00:00.000000,free,0x10,8,0\n", 6_000_000},
	"kineto": {`{"traceEvents": [`, `{"ph":"X","name":"cudaStreamSynchronize","ts":1,"dur":5,"tid":1},`, 5_000_000},
	"cupy":   {"", `{"hook":"malloc","device_id":0,"mem_size":1,"mem_ptr":0}` + "\n" + `{"hook":"alloc","device_id":0,"mem_size":1,"mem_ptr":1}` + "\n", 3_000_000},
}

// writeBomb packs a bomb, or a part of it, and returns its size.
func writeBomb(t *testing.T, path, name string, part int) int64 {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, _ := gzip.NewWriterLevel(file, gzip.BestSpeed)
	b := bombs[name]
	z.Write([]byte(b.head))
	chunk := bytes.Repeat([]byte(b.again), 10_000)
	for range b.times / 10_000 / part {
		z.Write(chunk)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A file that is made to fill the memory is refused. The process takes its own 16 MiB, and twice
// the budget of 16 MiB and 30 times the file: lists that grow leave shorter ones behind, as
// garbage.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("packs hundreds of MiB")
	}
	for name := range bombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), name+".gz")
			size := writeBomb(t, path, name, 2)
			cmd := exec.Command("replay", "info", path)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			used := peak(cmd.Process.Pid)
			if err := cmd.Wait(); err != nil && !strings.Contains(out.String(), "--max-memory") {
				t.Errorf("%v: %s", err, out.String())
			}
			if most := 16<<20 + 2*(16<<20+30*size); used > most {
				t.Errorf("%d MiB for a file of %d KiB, at most %d MiB", used>>20, size>>10, most>>20)
			}
			t.Logf("%s: %d KiB packed, %d MiB, %v of processor time", name, size>>10, used>>20, cmd.ProcessState.UserTime())
		})
	}
}

// peak returns the most resident bytes of a process, read until it ends. The figure that the kernel
// reports at its end would include the memory of this test, which it was forked from.
func peak(pid int) (most int64) {
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, after, alive := strings.Cut(string(status), "VmHWM:")
		if err != nil || !alive {
			return most
		}
		var kib int64
		fmt.Sscan(after, &kib)
		most = max(most, kib<<10)
		time.Sleep(time.Millisecond)
	}
}
