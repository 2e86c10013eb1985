package umpire_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/trace/umpire"
)

// Lines in the two forms, with the fields that Umpire 2022.3 and 0.3 write.
const (
	newer = `{"category":"metadata","name":"version","numeric_args":{"major":2022,"minor":3,"patch":1},"string_args":{"rc":"1"},"tags":{},"timestamp":1000}
{"category":"operation","name":"make_memory_resource","numeric_args":{"introspection":1},"string_args":{"allocator_ref":"0xa"},"tags":{"allocator_name":"HOST","replay":"true"},"timestamp":1001}
{"category":"operation","name":"make_memory_resource","numeric_args":{"introspection":1},"string_args":{"allocator_ref":"0xb"},"tags":{"allocator_name":"DEVICE::2","replay":"true"},"timestamp":1002}
{"category":"operation","name":"make_allocator","numeric_args":{"arg1":512,"introspection":1},"string_args":{"allocator_ref":"0xc","arg0":"DEVICE::2","type":"QuickPool"},"tags":{"allocator_name":"pool","replay":"true"},"timestamp":1003}
{"category":"operation","name":"make_allocator","numeric_args":{"introspection":1},"string_args":{"allocator_ref":"0xd","arg0":"pool","type":"ThreadSafe"},"tags":{"allocator_name":"safe","replay":"true"},"timestamp":1004}
{"category":"operation","name":"allocate","numeric_args":{"size":128},"string_args":{"allocator_ref":"0xd","pointer":"0x100"},"tags":{"replay":"true"},"timestamp":2000}
{"category":"operation","name":"allocate","numeric_args":{"size":0},"string_args":{"allocator_ref":"0xa","pointer":"0x900"},"tags":{"replay":"true"},"timestamp":2010}
{"category":"operation","name":"deallocate","string_args":{"allocator_ref":"0xa","pointer":"0x900"},"tags":{"replay":"true"},"timestamp":2020}
{"category":"operation","name":"reallocate","numeric_args":{"size":256},"string_args":{"allocator_ref":"0xd","current_ptr":"0x100"},"tags":{"allocator_name":"safe","replay":"true"},"timestamp":3000}
{"category":"operation","name":"deallocate","string_args":{"allocator_ref":"0xd","pointer":"0x100"},"tags":{"replay":"true"},"timestamp":3010}
{"category":"operation","name":"allocate","numeric_args":{"size":256},"string_args":{"allocator_ref":"0xd","pointer":"0x100"},"tags":{"replay":"true"},"timestamp":3020}
{"category":"operation","name":"reallocate","numeric_args":{},"string_args":{"allocator_ref":"0xd","new_ptr":"0x100"},"tags":{"allocator_name":"safe"},"timestamp":3030}
{"category":"operation","name":"reallocate","numeric_args":{"size":64},"string_args":{"allocator_ref":"0xa","current_ptr":"0"},"tags":{"allocator_name":"HOST","replay":"true"},"timestamp":4000}
{"category":"operation","name":"reallocate","numeric_args":{},"string_args":{"allocator_ref":"0xa","new_ptr":"0x800"},"tags":{"allocator_name":"HOST"},"timestamp":4010}
{"category":"operation","name":"reallocate","numeric_args":{"size":96},"string_args":{"allocator_ref":"0xa","current_ptr":"0x800"},"tags":{"allocator_name":"HOST","replay":"true"},"timestamp":5000}
{"category":"operation","name":"reallocate","numeric_args":{},"string_args":{"allocator_ref":"0xa","new_ptr":"0x800"},"tags":{"allocator_name":"HOST"},"timestamp":5010}
{"category":"operation","name":"coalesce","numeric_args":{},"string_args":{},"tags":{"allocator_name":"pool","replay":"true"},"timestamp":5020}
`
	older = `# a licence
{ "kind":"replay", "uid":27494, "timestamp":900, "event": "makeMemoryResource", "payload": { "name": "UM" }, "result": "0xa" }
{ "kind":"replay", "uid":27494, "timestamp":910, "event": "makeAllocator", "payload": { "type":"DynamicPool", "with_introspection":true, "allocator_name":"pool", "args": [ "UM" ] } }
{ "kind":"replay", "uid":27494, "timestamp":920, "event": "makeAllocator", "payload": { "type":"DynamicPool", "with_introspection":true, "allocator_name":"pool", "args": [ "UM" ] }, "result": { "allocator_ref":"0xb" } }
{ "kind":"replay", "uid":27494, "timestamp":1000, "event": "allocate", "payload": { "allocator_ref": "0xb", "size": 0 } }
{ "kind":"replay", "uid":27494, "timestamp":1010, "event": "allocate", "payload": { "allocator_ref": "0xb", "size": 0 }, "result": { "memory_ptr": "0x10" } }
{ "kind":"replay", "uid":27494, "timestamp":1020, "event": "allocate", "payload": { "allocator_ref": "0xb", "size": 134 }, "result": { "memory_ptr": "0x10" } }
{ "kind":"replay", "uid":27494, "timestamp":1030, "event": "deallocate", "payload": { "allocator_ref": "0xb", "memory_ptr": "0x10" } }
{ "kind":"replay", "uid":27494, "timestamp":1040, "event": "deallocate", "payload": { "allocator_ref": "0xb", "memory_ptr": "0x10" } }
`
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		file, want string
		start      int64
	}{
		{newer, `0 alloc id=1 bytes=128 space=device2
1010 drop id=1 bytes=128 space=device2
1020 alloc id=2 bytes=256 space=device2
2010 alloc id=3 bytes=64
3010 drop id=3 bytes=64
3010 alloc id=4 bytes=96
`, 2000},
		{older, "0 alloc id=1 bytes=134 space=managed\n10 drop id=1 bytes=134 space=managed\n", 1020},
	} {
		if !umpire.Detect([]byte(c.file)) {
			t.Errorf("not detected: %.60q", c.file)
		}
		tr, err := umpire.Read(strings.NewReader(c.file))
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Validate(); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, e := range tr.Events {
			b.WriteString(tr.Text(e) + "\n")
		}
		if b.String() != c.want || !tr.Start.Equal(time.Unix(0, c.start)) {
			t.Errorf("from %v, got:\n%swant:\n%s", tr.Start, b.String(), c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	const alloc = `{"name":"allocate","numeric_args":{"size":8},"string_args":{"pointer":"0x1"},"timestamp":5000000000}` + "\n"
	for _, c := range []struct{ file, want string }{
		{"", "umpire: empty trace"},
		{"{", "umpire: line 1: unexpected end of JSON"},
		{`{"timestamp":5}`, "line 1: neither a name nor an event"},
		{`{"name":"allocate","timestamp":-1}`, "line 1: timestamp -1"},
		{`{"name":"allocate","string_args":{"pointer":"zz"}}`, "line 1: pointer"},
		{alloc + alloc, "line 2: allocation at address 0x1, where there is an object"},
		{`{"name":"deallocate","string_args":{"pointer":"0x1"}}`, "line 1: free of address 0x1, which was never allocated"},
		{alloc + `{"name":"deallocate","string_args":{"pointer":"0x1"},"timestamp":1}`, "line 2: time goes backwards"},
		{alloc + `{"name":"allocate","numeric_args":{"size":-8},"string_args":{"pointer":"0x2"},"timestamp":5000000000}`, "line 2: -8 bytes"},
		{`{"name":"reallocate","string_args":{"new_ptr":"0x1"}}`, "line 1: end of a reallocate"},
		{`{"event":"makeMemoryResource","result":5}`, "line 1: result"},
	} {
		if _, err := umpire.Read(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: error %v, want %q", c.file, err, c.want)
		}
	}
	if (umpire.Detect([]byte(`{"traceEvents":[]}`))) || umpire.Detect(nil) {
		t.Error("Detect")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(newer))
	f.Add([]byte(older))
	f.Fuzz(func(t *testing.T, file []byte) {
		tr, err := umpire.Read(bytes.NewReader(file))
		if err == nil {
			err = tr.Validate()
		} else if strings.HasPrefix(err.Error(), "umpire: ") {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}
