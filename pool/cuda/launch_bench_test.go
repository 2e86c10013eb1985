package cuda

import (
	"testing"

	"github.com/eagergc/eagergc/pool/array"
)

// BenchmarkLaunch measures what the program pays to queue a kernel and a copy. The
// queue is emptied before it is full, outside the measurement.
func BenchmarkLaunch(b *testing.B) {
	d := open(b)
	s := must[*Stream](b)(d.NewStream())
	w := must[*Work](b)(NewWork(d))
	from, to := must[uintptr](b)(memAlloc(d, 1<<20)), must[uintptr](b)(memAlloc(d, 1<<20))
	p := newPool(b, d.Memory(), d.Space(), false)
	a := must[array.Array[byte]](b)(array.New[byte](p, 1<<20, array.On(s.ID())))
	k := must[*Kernel](b)(must[*Module](b)(d.Load(double)).Kernel("double"))
	for name, queue := range map[string]func() error{
		"packed": func() error { return w.Spin(s, 0) },
		"copy":   func() error { return s.Copy(to, from, 4096) },
		"fill":   func() error { return s.fillPattern(to, []byte{1}, 4096) },
		"with":   func() error { return With(a, s, func(addr uintptr) error { return w.Stamp(s, addr, 4096, 1) }) },
		"arrays": func() error { return Launch(k, s, Dim{}, Dim{X: 32}, a) },
	} {
		b.Run("call="+name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := queue(); err != nil {
					b.Fatal(err)
				}
				if i%256 == 255 {
					b.StopTimer()
					ok(b, s.Synchronize())
					b.StartTimer()
				}
			}
		})
	}
	a.Free()
	ok(b, w.Close())
}

// BenchmarkTransfers measures copies between host and device from memory that is
// pageable, page-locked, a registered slice, and staged through a pinned pool.
func BenchmarkTransfers(b *testing.B) {
	pools := must[*Pools](b)(Default(0))
	defer pools.Close()
	d := pools.Device
	if d == nil {
		b.Skip("no GPU")
	}
	s := must[*Stream](b)(d.NewStream())
	for _, mib := range []int{1, 16, 256} {
		n := mib << 20
		there := must[uintptr](b)(memAlloc(d, int64(n)))
		pinned := must[*HostBuffer](b)(d.NewHostBuffer(n))
		pageable, registered := make([]byte, n), make([]byte, n)
		for _, x := range [][]byte{pageable, registered, pinned.Bytes()} {
			for i := 0; i < n; i += 4096 {
				x[i] = 1 // it is there
			}
		}
		r := must[*Registered[byte]](b)(Register(d, registered))
		a := must[array.Array[byte]](b)(array.New[byte](pools.Memory, n, array.On(s.ID())))
		measure := func(name string, copy func() error) {
			b.Run(name, func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					if err := copy(); err != nil {
						b.Fatal(err)
					}
					ok(b, s.Synchronize())
				}
			})
		}
		size := "/MiB=" + map[int]string{1: "1", 16: "16", 256: "256"}[mib]
		measure("up/from=pageable"+size, func() error { return s.upload(there, pageable) })
		measure("up/from=pinned"+size, func() error { return s.Copy(there, pinned.Addr(), int64(n)) })
		measure("up/from=registered"+size, func() error { return r.Upload(a, s) })
		measure("up/from=staged"+size, func() error { return a.CopyIn(pageable) })
		measure("down/from=pageable"+size, func() error { return s.download(pageable, there) })
		measure("down/from=pinned"+size, func() error { return s.Copy(pinned.Addr(), there, int64(n)) })
		a.Free()
		ok(b, r.Close())
		ok(b, pinned.Close())
		ok(b, memFree(d, there))
	}
}
