package cuda

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// One call has a device, or the host where there is none: arrays, waits and Close work
// the same.
func TestDefault(t *testing.T) {
	before := held()
	p := must[*Pools](t)(Default(0))
	if same := must[*Pools](t)(Default(0)); same != p {
		t.Error("a second call makes other pools")
	}
	for _, m := range []*pool.Pool{p.Memory, p.Pinned, p.Managed} {
		a := must[array.Array[float32]](t)(array.From(m, []float32{1, 2, 3}))
		if s := must[[]float32](t)(a.ToSlice()); !slices.Equal(s, []float32{1, 2, 3}) {
			t.Errorf("%v", s)
		}
		a.Free()
	}
	ok(t, p.Synchronize())
	if p.Device == nil {
		if p.Memory.Space() != pressure.Host || p.Pinned != p.Memory {
			t.Errorf("without a GPU: memory of %v", p.Memory.Space())
		}
		if _, err := p.Kernel("", "x"); !errors.Is(err, ErrNoDevice) {
			t.Errorf("a kernel without a GPU: %v", err)
		}
	} else if p.Memory.Space() != p.Device.Space() || p.Device.syncer.Load() == nil || p.Device.staging.Load() != p.Pinned {
		t.Error("the waits or the uploads go elsewhere")
	}
	ok(t, p.Close())
	ok(t, p.Close())
	if _, err := p.Memory.Alloc(1, 0); !errors.Is(err, pool.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	again := must[*Pools](t)(Default(0))
	if again == p {
		t.Error("closed pools are handed out again")
	}
	ok(t, again.Close())
	if n := held() - before; n != 0 {
		t.Errorf("%d pieces of memory are left", n)
	}
}

// The environment chooses the memory, and whether pools cache.
func TestDefaultOfTheEnvironment(t *testing.T) {
	for env, cached := range map[string]bool{"": true, "none": false, "OFF": false, "all": true} {
		t.Setenv(envPool, env)
		p := must[*Pools](t)(Default(0))
		for _, m := range []*pool.Pool{p.Memory, p.Pinned, p.Managed} {
			m.Free(must[pool.Block](t)(m.Alloc(1000, 0)))
			if s := m.Stats(); (s.Reserved > 0) != cached {
				t.Errorf("%q: %d bytes of %v are cached", env, s.Reserved, m.Space())
			}
		}
		ok(t, p.Close())
	}
	t.Setenv(envPool, "")
	if n, err := Count(); err != nil || n == 0 {
		return
	}
	for env, want := range map[string]pressure.Space{"device": pressure.Device(0), "managed": pressure.Managed, "pinned": pressure.Pinned, "unified": pressure.Managed, "host": pressure.Pinned, "other": pressure.Device(0)} {
		t.Setenv(envMemory, env)
		p := must[*Pools](t)(Default(0))
		if p.Memory.Space() != want {
			t.Errorf("%s: memory of %v", env, p.Memory.Space())
		}
		ok(t, p.Close())
	}
}

// Settings reach the collector and each pool. Peaks are exact, an out-of-memory error names
// the holders, and Close says what is live.
func TestSettings(t *testing.T) {
	var log bytes.Buffer
	told := 0
	p := must[*Pools](t)(Default(0, Settings{
		Collector: gc.Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
		Pool:      pool.Config{Sites: 1, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 8 << 20}}, Warn: func(error) { told++ }},
	}))
	if _, err := Default(0, Settings{}); err == nil {
		t.Error("settings for pools that are there")
	}
	a := must[array.Array[byte]](t)(array.New[byte](p.Memory, 4096))
	if peak := p.Memory.Stats().LivePeak; peak != 4096 {
		t.Errorf("a peak of %d bytes", peak)
	}
	for _, m := range []*pool.Pool{p.Managed, p.Pinned} {
		if _, hard := m.Limits(); p.Device != nil && hard != 0 {
			t.Errorf("%v memory, which is the machine's, has the device's limit of %d bytes", m.Space(), hard)
		}
	}
	_, err := p.Memory.Alloc(16<<20, 0)
	if full := new(pool.OutOfMemoryError); !errors.As(err, &full) || !strings.Contains(full.Detail(), "pools_test.go") {
		t.Errorf("%v", err)
	}
	p.Collector.Collect(policy.TriggerExplicit)
	runtime.KeepAlive(a)
	if live := new(pool.LiveError); !errors.As(p.Close(), &live) || live.Bytes != 4096 || told == 0 || log.Len() == 0 {
		t.Errorf("at Close: %+v, told %d times, log %q", live, told, log.String())
	}
	a.Free()
}

// What the driver allocates climbs the ladder of the pool that the waits go through.
func TestTheDriverClimbsTheLadder(t *testing.T) {
	memory := must[*pool.Pool](t)(pool.New(pool.Config{}))
	defer memory.Close()
	d := &Device{}
	b := must[pool.Block](t)(memory.Alloc(10<<20, 0))
	memory.Free(b) // cached
	calls := 0
	full := &Error{Call: "cuModuleLoadData", Code: codeOutOfMemory, Name: "CUDA_ERROR_OUT_OF_MEMORY"}
	load := func() error {
		if calls++; memory.Stats().Reserved > 0 {
			return full
		}
		return nil
	}
	if err := d.retry(load); err != full || calls != 1 {
		t.Errorf("without a pool: %v after %d calls", err, calls)
	}
	d.SyncThrough(memory)
	calls = 0
	if err := d.retry(load); err != nil || calls != 2 {
		t.Errorf("with one that caches 10 MiB: %v after %d calls", err, calls)
	}
	b = must[pool.Block](t)(memory.Alloc(1, 0))
	defer memory.Free(b)
	if err := d.retry(load); !errors.Is(err, pool.ErrOutOfMemory) || !errors.Is(err, full) {
		t.Errorf("with one that is in use: %v", err)
	}
	if err := d.retry(func() error { return &Error{Code: 1} }); errors.Is(err, pool.ErrOutOfMemory) {
		t.Errorf("another error: %v", err)
	}
}

const signatures = `// .entry nothing(.param .u64 a)
.version 7.0
.visible .entry subtract(.param .u64 out, .param .u64 .ptr .global .align 4 a, .param .f32 scale, .param .u32 n)
{ .param .u64 not_one; }
.entry wide(
	.param .align 8 .b8 wide_param_0[16], // a structure
	.param .s16 wide_param_1
)
.entry none() {}`

func TestParametersOf(t *testing.T) {
	got := parametersOf(signatures)
	for name, want := range map[string][]string{"subtract": {"u64", "u64", "f32", "u32"}, "wide": {"b8[]", "s16"}, "none": {}} {
		if p, ok := got[name]; !ok || !slices.Equal(p, want) {
			t.Errorf("%s: %v, want %v", name, p, want)
		}
	}
	if len(got) != 3 {
		t.Errorf("%v", got)
	}
}

// Numbers become what the kernel declares, or Launch says which argument is wrong.
func TestNumbersOfLaunch(t *testing.T) {
	for _, c := range []struct {
		v     any
		param string
		want  string // bytes, or what the error has
	}{
		{0.5, "f32", "\x00\x00\x00\x3f"}, {2, "f32", "\x00\x00\x00\x40"}, {float32(0.5), "f64", "\x00\x00\x00\x00\x00\x00\xe0\x3f"},
		{7, "u32", "\x07\x00\x00\x00"}, {-1, "s32", "\xff\xff\xff\xff"}, {uint32(1 << 31), "b32", "\x00\x00\x00\x80"},
		{true, "u8", "\x01"}, {false, "", "\x00"}, {int8(-2), "", "\xfe"}, {uint16(7), "s32", "\x07\x00\x00\x00"}, {uint64(1 << 63), "b64", "\x00\x00\x00\x00\x00\x00\x00\x80"},
		{-1, "u8", "-1 does not fit a .u8"}, {uint64(1 << 63), "s64", "does not fit a .s64"}, {uint64(1<<64 - 1), "u16", "does not fit a .u16"}, {1, "f16", "int for a parameter of type .f16"},
		{0.5, "b32", "\x00\x00\x00\x3f"}, {-2, "s64", "\xfe\xff\xff\xff\xff\xff\xff\xff"}, {3, "u8", "\x03"}, {-3, "s16", "\xfd\xff"},
		{7, "", "\x07\x00\x00\x00\x00\x00\x00\x00"}, {float32(0.5), "", "\x00\x00\x00\x3f"}, {int32(-1), "", "\xff\xff\xff\xff"},
		{1 << 32, "u32", "4294967296 does not fit a .u32"}, {-1, "u32", "-1 does not fit a .u32"}, {uint32(1 << 31), "s32", "does not fit a .s32"},
		{-1, "u64", "-1 does not fit a .u64"}, {uint64(1 << 63), "u32", "does not fit a .u32"}, {0.5, "u32", "float64 for a parameter of type .u32"}, {300, "u8", "300 does not fit a .u8"},
		{"x", "u32", "string is no array"}, {1, "b8[]", "int for a parameter of type .b8[]"},
	} {
		var l launching
		n, err := number(c.v, c.param)
		if err == nil {
			l.pack(n)
		}
		if err == nil && string(l.packed) != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v for %q: % x, %v; want %q", c.v, c.param, l.packed, err, c.want)
		}
	}
}

// What is wrong with a launch is said before anything is queued.
func TestLaunchSaysWhatIsWrong(t *testing.T) {
	d := &Device{index: 1, name: "GPU"}
	d.null.dev = d
	k := &Kernel{dev: d, name: "subtract", params: []string{"u64", "u64", "f32", "u32"}}
	host := must[*pool.Pool](t)(pool.New(pool.Config{}))
	defer host.Close()
	a := must[array.Array[float32]](t)(array.New[float32](host, 10))
	freed := must[array.Array[float32]](t)(array.New[float32](host, 10))
	freed.Free()
	for want, args := range map[string][]any{
		"takes 4 arguments, not 2":                             {a, a},
		"argument 1 of kernel subtract: the zero array":        {array.Array[float32]{}, a, 0.5, 1},
		"argument 1 of kernel subtract: array: used after":     {freed, a, 0.5, 1},
		"host memory that is not page-locked":                  {a, a, 0.5, 1},
		"argument 1 of kernel subtract: string is no array":    {"x", a, 0.5, 1},
		"argument 3 of kernel subtract: an array, want a .f32": {uint64(1), uint64(2), a, 1},
		"argument 4 of kernel subtract: -1 does not fit":       {uint64(1), uint64(2), 0.5, -1},
	} {
		if err := Launch(k, nil, Dim{}, Dim{}, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := Launch(nil, nil, Dim{}, Dim{}); err == nil {
		t.Error("no kernel")
	}
	if err := CopyTo(a, a.View(1, 10), nil); err == nil || err.Error() != "cuda: copy of 9 elements to 10" {
		t.Error(err)
	}
	far := &Device{index: 2}
	if err := Launch(&Kernel{dev: d, name: "none", params: []string{}}, &Stream{dev: far}, Dim{}, Dim{}); err == nil || !strings.Contains(err.Error(), "load the module there too") {
		t.Errorf("a stream of another device: %v", err)
	}
}

// Without peer access the error names both devices and says what to do.
func TestNoPeerAccess(t *testing.T) {
	d := &Device{index: 1, peers: map[int]bool{0: false}}
	d.null.dev = d
	a := must[array.Array[float32]](t)(array.New[float32](newPool(t, pool.Host{}, pressure.Device(0), false), 256))
	defer a.Free()
	const want = "1.00 KiB on device 0 cannot be used on device 1, which has no peer access to it: copy it with CopyTo to an array of device 1, or use it on device 0"
	if err := Launch(&Kernel{dev: d, name: "k"}, nil, Dim{}, Dim{}, a); !errors.Is(err, array.ErrReach) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
