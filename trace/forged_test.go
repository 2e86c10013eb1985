package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A message of a file that is written by hand, as another writer or somebody who means no good would do it.
type message struct {
	kind   uint8
	of     any // its header
	meta   []flat
	body   []byte
	length int64 // of the body as the header says it; 0: as it is
}

// messages are those of a file: schema, kinds, spaces, and the events in one batch.
func messages(tr *Trace) []*message {
	f := &Writer{to: io.Discard, numbers: map[string]uint32{"": 0}, spaces: usualSpaces}
	words := func(c, n int) *message {
		return &message{kind: dictionaryMessage, of: flat{int64(c), flat{int64(n), []extent{{int64(n), 0}}, slices.Clone(f.buffers)}, false}, body: slices.Clone(f.body)}
	}
	all := []*message{{kind: schemaMessage, of: schemaOf(tr)}}
	f.words(colKind, int(kinds), func(i int) string { return Kind(i).String() })
	all = append(all, words(colKind, int(kinds)))
	f.knowSpaces()
	all = append(all, words(colSpace, usualSpaces))
	f.write(tr.Events, tr.Labels)
	nodes := slices.Repeat([]extent{{int64(len(tr.Events)), 0}}, columns)
	return append(all, &message{kind: batchMessage, of: flat{int64(len(tr.Events)), nodes, f.buffers, nil}, body: f.body})
}

// fileOf is the file, and where each message begins.
func fileOf(all []*message) (b []byte, at []int) {
	for _, m := range all {
		length := m.length
		if length == 0 {
			length = int64(len(m.body))
		}
		head, _ := flat{metadataV5, m.kind, m.of, length, m.meta}.appendTo(nil)
		at = append(at, len(b))
		b = little.AppendUint32(little.AppendUint32(b, continuation), uint32(len(head)))
		b = append(append(b, head...), m.body...)
	}
	return little.AppendUint64(b, continuation), at
}

// ten are 10 events of all kinds, in the order of a trace, each field of another value.
func ten() *Trace {
	tr := &Trace{Name: "ten", Labels: []string{"", "a", "bc"}, Meta: map[string]string{"k": "v"}, Start: time.Unix(1, 2).UTC()}
	for i := range 10 {
		e := Event{Time: int64(100 + i), ID: uint64(200 + i), Bytes: int64(300 + i), Duration: time.Duration(400 + i), Stream: uint32(500 + i), Aux: uint32(600 + i), Kind: Kind(i), Space: pressure.Space(i)}
		if e.Kind.Labelled() {
			e.Aux = map[Kind]uint32{Alloc: 1, Sync: 2, Mark: 0, Decision: 1}[e.Kind]
		}
		tr.Record(e)
	}
	return tr
}

func fieldsOf(all []*message) []flat { return all[0].of.(flat)[1].([]flat) }

// without leaves out the metadata of the schema with a key.
func without(all []*message, key string) []flat {
	return slices.DeleteFunc(all[0].of.(flat)[2].([]flat), func(p flat) bool { return p[0] == key })
}

// same wants the events of ten.
func same(t *testing.T, name string, all []*message) {
	t.Helper()
	file, _ := fileOf(all)
	got, err := Read(bytes.NewReader(file))
	if err != nil {
		t.Errorf("%s: %v", name, err)
	} else if want := ten(); !slices.Equal(got.Events, want.Events) || !slices.Equal(got.Labels, want.Labels) || got.Name != "ten" || !maps.Equal(got.Meta, want.Meta) || !got.Start.Equal(want.Start) {
		t.Errorf("%s: read %+v, want %+v", name, got, want)
	}
}

// TestFilesOfOthers: a writer may leave out the check sums, have its columns in any order and others among them, its words in
// any order, and integers in the place of words and durations, as version 1 had them.
func TestFilesOfOthers(t *testing.T) {
	same(t, "as it is", messages(ten()))

	all := messages(ten())
	batch := all[3].of.(flat)
	var fields []flat
	var nodes, buffers []extent
	for c := range slices.Backward(fieldsOf(all)) {
		kind := []uint8{2, 3, 4, 5, 6, 7, 8, 19, 15}[c]
		fields = append(fields, flat{"other", true, kind, flat{}, nil, []flat{}, nil}, fieldsOf(all)[c])
		nodes = append(nodes, extent{10, 10}, extent{10, 0})
		buffers = append(append(buffers, make([]extent, buffersOf[kind])...), batch[2].([]extent)[2*c:min(2*c+2, 2*columns)]...)
		if c == colLabel {
			buffers = append(buffers, batch[2].([]extent)[2*c+2])
		}
	}
	all[0].of.(flat)[1], batch[1], batch[2] = fields, nodes, buffers
	same(t, "columns backwards, among others", all)

	all = messages(ten())
	f := &Writer{to: io.Discard}
	f.words(colKind, int(kinds), func(i int) string { return Kind(int(kinds) - 1 - i).String() })
	all[1].of.(flat)[1].(flat)[2], all[1].body = f.buffers, f.body
	for i := range 10 {
		all[3].body[int(all[3].of.(flat)[2].([]extent)[2*colKind+1].at)+i] = uint8(9 - i)
	}
	same(t, "words backwards", all)

	all = messages(ten())
	for _, c := range []int{colTime, colKind, colSpace, colDuration} {
		of := fieldsOf(all)[c]
		of[2], of[3], of[4] = typeInt, integer(format[c].form.plain()), nil
	}
	all[0].of.(flat)[2] = append(without(all, keyVersion), flat{keyVersion, version1})
	same(t, "version 1", slices.Delete(all, 1, 3))

	all = messages(ten())
	all[2].meta, all[3].meta = pairs("x", "y"), pairs("keySum", "z")
	all = slices.Insert(all, 1, &message{kind: dictionaryMessage, of: flat{int64(77), flat{}, false}})
	all = slices.Insert(all, 4, &message{kind: batchMessage, of: flat{int64(0), make([]extent, columns), make([]extent, 2*columns+1), nil}})
	same(t, "other metadata, another dictionary, a batch of nothing", all)
}

// TestTypesOfColumns: each column in each type that it may not have is refused by name.
func TestTypesOfColumns(t *testing.T) {
	types := map[string]struct {
		kind uint8
		of   flat
		dict any
	}{
		"utf8": {kind: typeText}, "duration[ns]": {kind: typeDuration, of: flat{unitNano}},
		"another type: seconds": {kind: typeDuration, of: flat{int16(0)}}, "another type: ms": {kind: typeDuration, of: flat{int16(1)}},
		"another type: ms if it does not say": {kind: typeDuration}, "another type: us": {kind: typeDuration, of: flat{int16(2)}},
		"words": {kind: typeText, dict: flat{int64(1), integer(uint8s)}}, "another type: words in 4 bytes": {kind: typeText, dict: flat{int64(1), integer(uint32s)}},
		"another type: numbers in a dictionary": {kind: typeInt, of: integer(int64s), dict: flat{int64(1), integer(uint8s)}},
		"another type: a dictionary of int32":   {kind: typeText, dict: flat{int64(1)}},
		"another type: float":                   {kind: 3}, "another type: bool": {kind: 6}, "another type: large text": {kind: 20},
		"nested: a list": {kind: 12}, "nested: no such type": {kind: 21}, "nested: none": {kind: 0},
	}
	for _, bits := range []int32{8, 16, 32, 64} {
		for _, signed := range []bool{true, false} {
			name := fmt.Sprintf("uint%d", bits)
			switch {
			case signed && bits == 64:
				name = "int64"
			case signed || bits == 16:
				name = fmt.Sprintf("another type: %d, %v", bits, signed)
			}
			types[name] = struct {
				kind uint8
				of   flat
				dict any
			}{kind: typeInt, of: flat{bits, signed}}
		}
	}
	may := [columns][]string{{"duration[ns]", "int64"}, {"words", "uint8"}, {"words", "uint8"}, {"uint64"}, {"int64"}, {"duration[ns]", "int64"}, {"uint32"}, {"uint32"}, {"utf8"}}
	for c, name := range []string{"time", "kind", "space", "id", "bytes", "duration", "stream", "aux", "label"} {
		for is, as := range types {
			all := messages(&Trace{})[:1]
			of := fieldsOf(all)[c]
			of[2], of[3], of[4] = as.kind, as.of, as.dict
			kind, _, _ := strings.Cut(is, ":")
			want := fmt.Sprintf("trace: byte 0: column %q is %s, want %s", name, kind, may[c][0])
			if slices.Contains(may[c], is) {
				want = ""
			} else if kind == "nested" {
				want = fmt.Sprintf("trace: byte 0: column %d is nested, or of a type that is not read", c)
			}
			file, _ := fileOf(all)
			_, err := Read(bytes.NewReader(file))
			if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
				t.Errorf("%s as %s: %v, want %q", name, is, err, want)
			}
		}
	}
}

// TestForged: each fault of a message, by the message's place and in words.
func TestForged(t *testing.T) {
	type all = []*message
	schema := func(a all) flat { return a[0].of.(flat) }
	kindsOf := func(a all) flat { return a[1].of.(flat) }
	batch := func(a all) flat { return a[3].of.(flat) }
	buffers := func(a all) []extent { return batch(a)[2].([]extent) }
	offsets := func(a all, i int, to uint32) { little.PutUint32(a[3].body[int(buffers(a)[2*colLabel+1].at)+4*i:], to) }
	word := func(a all, text string) {
		f := &Writer{to: io.Discard}
		f.words(colKind, 1, func(int) string { return text })
		kindsOf(a)[1], a[1].body = flat{int64(1), []extent{{1, 0}}, f.buffers}, f.body
	}
	body := len(messages(ten())[3].body)
	for want, c := range map[string]struct {
		in     int // the message
		change func(all) all
	}{
		`message of kind 2 before the schema, or a second schema`:                {0, func(a all) all { return a[1:] }},
		`message of kind 1 before the schema, or a second schema`:                {1, func(a all) all { return slices.Insert(a, 1, a[0]) }},
		`message of kind 9, want a schema, a dictionary or a record batch`:       {3, func(a all) all { a[3].kind = 9; return a }},
		`message without a header`:                                               {1, func(a all) all { a[1].of = nil; return a }},
		`body of a message: -8 over the bound of the reader of 268435456`:        {1, func(a all) all { a[1].length = -8; return a }},
		`body of a message: 268435457 over the bound of the reader of 268435456`: {1, func(a all) all { a[1].length = 256<<20 + 1; return a }},
		`big-endian numbers`:                                         {0, func(a all) all { schema(a)[0] = int16(1); return a }},
		`schema has 0 columns "id", want one`:                        {0, func(a all) all { schema(a)[1] = slices.Delete(fieldsOf(a), colID, colID+1); return a }},
		`schema has 0 columns "label", want one`:                     {0, func(a all) all { schema(a)[1] = fieldsOf(a)[:colLabel]; return a }},
		`schema has 2 columns "aux", want one`:                       {0, func(a all) all { schema(a)[1] = append(fieldsOf(a), fieldsOf(a)[colAux]); return a }},
		`columns: 257 over the bound of the reader of 256`:           {0, func(a all) all { schema(a)[1] = slices.Repeat(fieldsOf(a)[:1], 257); return a }},
		`schema has 256 columns "time", want one`:                    {0, func(a all) all { schema(a)[1] = slices.Repeat(fieldsOf(a)[:1], 256); return a }},
		`column 3 is nested, or of a type that is not read`:          {0, func(a all) all { fieldsOf(a)[colID][5] = []flat{{"child"}}; return a }},
		`schema has no eagergc.version: not a trace`:                 {0, func(a all) all { schema(a)[2] = without(a, keyVersion); return a }},
		`version "3" of the trace schema is not known (want 1 or 2)`: {0, func(a all) all { schema(a)[2] = append(without(a, keyVersion), flat{keyVersion, "3"}); return a }},
		`schema metadata eagergc.start: parsing time "now" as "2006-01-02T15:04:05.999999999Z07:00": cannot parse "now" as "2006"`: {0, func(a all) all {
			schema(a)[2] = append(without(a, keyStart), flat{keyStart, "now"})
			return a
		}},
		`dictionary without words`:            {1, func(a all) all { kindsOf(a)[1] = nil; return a }},
		`dictionary that grows`:               {1, func(a all) all { kindsOf(a)[2] = true; return a }},
		`1 columns in 2 buffers, want 1 in 3`: {1, func(a all) all { kindsOf(a)[1].(flat)[2] = make([]extent, 2); return a }},
		`2 columns in 3 buffers, want 1 in 3`: {1, func(a all) all { kindsOf(a)[1].(flat)[1] = make([]extent, 2); return a }},
		`words of a dictionary: 257 over the bound of the reader of 256`: {1, func(a all) all {
			kindsOf(a)[1].(flat)[0], kindsOf(a)[1].(flat)[1] = int64(257), []extent{{257, 0}}
			return a
		}},
		`texts of 256 rows have 44 bytes of offsets`: {1, func(a all) all {
			kindsOf(a)[1].(flat)[0], kindsOf(a)[1].(flat)[1] = int64(256), []extent{{256, 0}}
			return a
		}},
		`buffer 1 is 99999 bytes at 0 of a body of 104`: {1, func(a all) all { kindsOf(a)[1].(flat)[2].([]extent)[1].length = 99999; return a }},
		`text 0 is bytes 9 to 5 of 54`:                  {1, func(a all) all { a[1].body[0] = 9; return a }},
		`unknown kind "allok" (want one of alloc, drop, free, sync, cycle, refuse, reserve, release, mark, decision)`: {1, func(a all) all { word(a, "allok"); return a }},
		`batch 0: 9 columns in 19 buffers, want 9 in 19`:                                                              {3, func(a all) all { a[3].of = append(batch(a), []extent{{1, 1}}); return a }},
		`batch 0: 8 columns in 19 buffers, want 9 in 19`:                                                              {3, func(a all) all { batch(a)[1] = batch(a)[1].([]extent)[:8]; return a }},
		`batch 0: events: -1 over the bound of the reader of 268435456`:                                               {3, func(a all) all { batch(a)[0] = int64(-1); return a }},
		`batch 0: events: 268435457 over the bound of the reader of 268435456`:                                        {3, func(a all) all { batch(a)[0] = int64(1<<28 + 1); return a }},
		`batch 0: column 0 has 10 rows, its batch 11`:                                                                 {3, func(a all) all { batch(a)[0] = int64(11); return a }},
		`batch 0: column 8 has 9 rows, its batch 10`:                                                                  {3, func(a all) all { batch(a)[1].([]extent)[8].at = 9; return a }},
		`batch 0: is packed with LZ4, want zstd or nothing`:                                                           {3, func(a all) all { batch(a)[3] = flat{uint8(0), uint8(0)}; return a }},
		`batch 0: column "bytes": has nulls`:                                                                          {3, func(a all) all { batch(a)[1].([]extent)[colBytes].length = 1; return a }},
		`batch 0: column "time": 79 bytes for 10 rows`:                                                                {3, func(a all) all { buffers(a)[2*colTime+1].length--; return a }},
		`batch 0: column "aux": 39 bytes for 10 rows`:                                                                 {3, func(a all) all { buffers(a)[2*colAux+1].length--; return a }},
		`batch 0: column "space": 9 bytes for 10 rows`:                                                                {3, func(a all) all { buffers(a)[2*colSpace+1].length--; return a }},
		`batch 0: column "time": buffer 1 is 80 bytes at -1 of a body of ` + fmt.Sprint(body):                         {3, func(a all) all { buffers(a)[1].at = -1; return a }},
		`batch 0: column "time": buffer 1 is -1 bytes at 0 of a body of ` + fmt.Sprint(body):                          {3, func(a all) all { buffers(a)[1].length = -1; return a }},
		fmt.Sprintf(`batch 0: column "time": buffer 1 is 0 bytes at %d of a body of %d`, body+1, body):                {3, func(a all) all { buffers(a)[1] = extent{int64(body) + 1, 0}; return a }},
		fmt.Sprintf(`batch 0: column "time": buffer 1 is 80 bytes at %d of a body of %d`, body-79, body):              {3, func(a all) all { buffers(a)[1].at = int64(body) - 79; return a }},
		`batch 0: column "kind": word 10 of a dictionary of 10`:                                                       {3, func(a all) all { a[3].body[buffers(a)[2*colKind+1].at+4] = 10; return a }},
		`batch 0: column "space": word 9 of a dictionary of 0`:                                                        {2, func(a all) all { return slices.Delete(a, 2, 3) }},
		`batch 0: texts of 10 rows have 43 bytes of offsets`:                                                          {3, func(a all) all { buffers(a)[2*colLabel+1].length = 43; return a }},
		`batch 0: texts of 10 rows have 44 bytes of offsets`:                                                          {3, func(a all) all { buffers(a)[2*colLabel].length = 1; return a }},
		`batch 0: event 0: text 0 is bytes 0 to 5 of 4`:                                                               {3, func(a all) all { offsets(a, 1, 5); return a }},
		`batch 0: event 3: text 3 is bytes 3 to 2 of 4`:                                                               {3, func(a all) all { offsets(a, 3, 3); offsets(a, 4, 2); return a }},
		`batch 0: event 0: text 0 is bytes -1 to 1 of 4`:                                                              {3, func(a all) all { offsets(a, 0, 1<<32-1); return a }},
		`batch 1: event 13: text 3 is bytes 3 to 2 of 4`: {4, func(a all) all {
			a = append(a, messages(ten())[3])
			a[3], a[4] = a[4], a[3]
			offsets(a[1:], 3, 3)
			offsets(a[1:], 4, 2)
			return a
		}},
		`batch 0: column "time": is packed with zstd: the program that reads it must import _ "github.com/eagergc/eagergc/trace/formats/zstd"`: {3, func(a all) all {
			batch(a)[3] = flat{codecZstd, uint8(0)}
			return a
		}},
		`check sum of a message: the bytes have `: {2, func(a all) all { a[2].meta = pairs("x", "y", keySum, "00000000"); return a }},
	} {
		file, at := fileOf(c.change(messages(ten())))
		_, err := Read(bytes.NewReader(file))
		if c.in >= len(at) {
			c.in = len(at) - 1
		}
		if got, want := fmt.Sprint(err), fmt.Sprintf("trace: byte %d: %s", at[c.in], want); !strings.HasPrefix(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	all1 := messages(ten()) // numbers, as version 1 has them, have no dictionary to be unknown in
	of := fieldsOf(all1)[colKind]
	of[2], of[3], of[4] = typeInt, integer(uint8s), nil
	all1[3].body[all1[3].of.(flat)[2].([]extent)[2*colKind+1].at+7] = 10
	file, _ := fileOf(all1)
	if _, err := Read(bytes.NewReader(file)); err == nil || !strings.HasSuffix(err.Error(), "batch 0: event 7: unknown kind 10") {
		t.Error(err)
	}
}

// TestFraming: each fault of the 8 bytes before a header.
func TestFraming(t *testing.T) {
	for want, head := range map[string][2]uint32{
		"no Arrow message, but ff ff ff ff 09 00 00 00":                          {continuation, 9},
		"no Arrow message, but ff ff ff ff f8 ff ff ff":                          {continuation, 1<<32 - 8},
		"no Arrow message, but fe ff ff ff 08 00 00 00":                          {continuation - 1, 8},
		"header of a message: 16777224 over the bound of the reader of 16777216": {continuation, 16<<20 + 8},
		"header of a message: 0 of 16777216 bytes":                               {continuation, 16 << 20},
	} {
		file := little.AppendUint32(little.AppendUint32(nil, head[0]), head[1])
		if _, err := Read(bytes.NewReader(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestPackedBuffers: what a packed buffer may hold, and each of its faults.
func TestPackedBuffers(t *testing.T) {
	packed(t, 0) // sets the codec
	frame := zstd.Load().Compress(nil, []byte("12345678"))
	buffer := func(size int64, frame []byte) []byte { return append(little.AppendUint64(nil, uint64(size)), frame...) }
	for _, c := range []struct{ want, data string }{
		{"", ""}, {"", string(buffer(8, frame))}, {"", string(buffer(-1, []byte("12345678")))},
		{"buffer 0 has 7 bytes, want its length", "1234567"},
		{"buffer 0: unpacks to 8 bytes, want 9", string(buffer(9, frame))},
		{"buffer 0: unpacks to 7 bytes, want 8", string(buffer(8, zstd.Load().Compress(nil, []byte("1234567"))))},
		{"buffer 0: zlib: invalid header", string(buffer(8, []byte("12345678")))},
		{"bytes of a record batch: -2 over the bound of the reader of 268435456", string(buffer(-2, frame))},
		{"bytes of a record batch: 268435457 over the bound of the reader of 268435456", string(buffer(256<<20+1, frame))},
	} {
		r := &reader{bounds: usualBounds}
		b := batch{r: r, packed: true, body: []byte(c.data), buffers: list{b: little.AppendUint64(make([]byte, 8), uint64(len(c.data))), n: 1}}
		got, err := b.buffer(0, 2)
		switch {
		case c.want == "" && (err != nil || string(got) != "12345678"[:8*min(1, len(c.data))]):
			t.Errorf("%q: %q, %v", c.data, got, err)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%q: %v, want %s", c.data, err, c.want)
		}
	}
}

// TestWhatMayBeUnpacked: 64 MiB, and so many bytes for each byte that was read, over all buffers.
func TestWhatMayBeUnpacked(t *testing.T) {
	r := &reader{bounds: bounds{batch: 100 << 20, ratio: 3}, offset: 1000}
	r.body.Write(make([]byte, 24))
	if err := r.allow(64 << 20); err != nil {
		t.Error(err)
	}
	if err := r.allow(0); err != nil {
		t.Error(err)
	}
	if err := r.allow(3 * 1024); err != nil {
		t.Error(err)
	}
	if err := r.allow(1); !errors.Is(err, errBound) || err.Error() != fmt.Sprintf("unpacked bytes: %d over the bound of the reader of %d", 64<<20+3*1024+1, 64<<20+3*1024) {
		t.Error(err)
	}
	big := &reader{bounds: bounds{batch: 10}}
	if big.allow(10) != nil || big.allow(11) == nil || big.allow(-1) == nil {
		t.Error("one buffer is not bounded by a batch")
	}
}

// TestHoldsAreCounted: 48 bytes an event; of a label its text and 64 bytes, once.
func TestHoldsAreCounted(t *testing.T) {
	file, _ := fileOf(messages(ten()))
	p := &purse{Reader: bytes.NewReader(file), left: 10*48 + 1 + 64 + 2 + 64}
	if _, err := Read(p); err != nil || p.left != 0 {
		t.Errorf("%d bytes of what is held are not counted: %v", p.left, err)
	}
}

// TestProvenanceIsBounded: texts that the pairs of a header share count each time.
func TestProvenanceIsBounded(t *testing.T) {
	b, _ := flat{pairs(keyVersion, version, keyMeta+"k", "v")}.appendTo(nil)
	meta, size := rootOf(b).list(0, 4), int64(len(keyVersion+version+keyMeta+"kv"))
	for most, want := range map[int64]string{size: "<nil>", size - 1: fmt.Sprintf("bytes of texts in the header: %d over the bound of the reader of %d", size, size-1)} {
		if err := new(Trace).provenance(meta, most); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestFlats: a table that is written is read back, its numbers and lists where their size wants them. What it lacks is as absent.
func TestFlats(t *testing.T) {
	inner := flat{nil, uint8(200), "text"}
	b, _ := flat{true, int16(-2), nil, int32(-3), int64(-4), "", []flat{inner, {}, inner}, []extent{{-5, 6}, {7, 8}}, inner, uint8(9)}.appendTo(nil)
	r := rootOf(b)
	for n, want := range []int64{1, -2, 77, -3, -4} {
		size := []int{1, 2, 4, 4, 8}[n]
		if got := r.number(n, size, 77); got != want || r.place(n)%size != 0 {
			t.Errorf("number %d is %d at %d, want %d", n, got, r.place(n), want)
		}
	}
	if r.number(9, 1, 0) != 9 || r.number(10, 1, 5) != 5 || r.number(500, 8, 6) != 6 {
		t.Error("the last field, or those after it")
	}
	if l := r.list(7, 16); l.n != 2 || l.at%8 != 0 || l.extent(0) != (extent{-5, 6}) || l.extent(1) != (extent{7, 8}) {
		t.Errorf("extents %+v", l)
	}
	l := r.list(6, 4)
	if l.n != 3 || l.at%4 != 0 || r.list(2, 4).n != 0 || len(r.text(5)) != 0 {
		t.Errorf("lists %+v", l)
	}
	one, ok := r.table(8)
	if _, none := r.table(2); !ok || none {
		t.Error("a table is there, or is not")
	}
	for _, x := range []table{one, l.table(0), l.table(2)} {
		if x.number(0, 4, 3) != 3 || x.number(1, 1, 0) != 200 || string(x.text(2)) != "text" {
			t.Errorf("an inner table reads %d, %d, %q", x.number(0, 4, 3), x.number(1, 1, 0), x.text(2))
		}
	}
	if l.table(1).number(0, 4, 3) != 3 {
		t.Error("an empty table has a field")
	}
	for width, fits := range map[int]bool{1: true, 2: true, 4: true, 5: false, 64: false} {
		list, _ := flat{"1234567890123456"}.appendTo(nil)
		root := rootOf(list)
		little.PutUint32(list[root.follow(root.place(0)).at:], uint32(4))
		end := root.follow(root.place(0)).at + 4 + 16
		func() {
			defer func() {
				if p := recover(); (p == nil) != fits || p != nil && p != "a list is longer than its header" {
					t.Errorf("4 elements of %d bytes in 16: %v", width, p)
				}
			}()
			table{list[:end], root.at}.list(0, width)
		}()
	}
}

// TestTheFormatStays: others read these files with libraries of their own. If the bytes change on purpose, let pyarrow read them (notebooks/run.sh).
func TestTheFormatStays(t *testing.T) {
	tr := ten()
	tr.Record(Event{Time: 110, Kind: Alloc, ID: 1, Bytes: 1, Space: 200, Aux: 2})
	var b bytes.Buffer
	if err := Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	if sum := sumOf(make([]byte, 8), 0, b.Bytes()); b.Len() != 7336 || sum != "57b29b62" {
		t.Errorf("%d bytes with check sum %s", b.Len(), sum)
	}
}

// TestBatchesOfAWriter: how many events make one.
func TestBatchesOfAWriter(t *testing.T) {
	mib := strings.Repeat("x", 1<<20)
	labels := []string{"", mib, strings.Repeat(mib, 5), mib[:1<<20-1]}
	of := func(n int, aux ...uint32) (events []Event) {
		for _, a := range aux {
			events = append(events, slices.Repeat([]Event{{Kind: Alloc, Aux: a}}, n)...)
		}
		return events
	}
	for _, c := range []struct {
		events []Event
		want   int
	}{
		{nil, 0}, {of(1, 0), 1}, {of(2048, 0), 2048}, {of(2049, 0), 2048}, {of(1, 1, 1, 1, 1), 4}, {of(1, 1, 1, 1, 1, 0, 1), 5},
		{of(1, 2), 1}, {of(1, 2, 0), 1}, {of(1, 0, 2), 1}, {of(1, 3, 1, 1, 1, 3), 4}, {of(3, 0, 1, 1), 7},
	} {
		if got := fits(c.events, labels); got != c.want {
			t.Errorf("of %d events %d make a batch, want %d", len(c.events), got, c.want)
		}
	}
}

// TestWordsOfSpaces: a file begins with the words of 11 spaces, and has those of all once an event is in another.
func TestWordsOfSpaces(t *testing.T) {
	for want, spaces := range map[int][]pressure.Space{2: {0, 10, 10}, 3: {0, 11, 255, 11}} {
		var b bytes.Buffer
		w, err := NewWriter(&b, &Trace{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range spaces {
			if _, err := w.WriteBatch([]Event{{Space: s}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		dictionaries := 0
		for file := b.Bytes(); len(file) > 0; {
			head := int(little.Uint32(file[4:]))
			m := rootOf(file[8:][:head])
			if uint8(m.number(1, 1, 0)) == dictionaryMessage {
				dictionaries++
			}
			file = file[8+head+int(m.number(3, 8, 0)):]
		}
		if dictionaries != want {
			t.Errorf("%v: %d dictionaries, want %d", spaces, dictionaries, want)
		}
	}
}

// TestNumbersOfLabels: a text keeps its number whatever index it has in a batch.
func TestNumbersOfLabels(t *testing.T) {
	f := &Writer{numbers: map[string]uint32{"": 0}}
	for _, c := range []struct {
		kind   Kind
		aux    uint32
		labels []string
		want   uint32
	}{
		{Alloc, 1, []string{"", "a"}, 1}, {Sync, 1, []string{"", "b"}, 2}, {Mark, 2, []string{"", "b", "a"}, 1}, {Decision, 1, []string{"", "b", "a"}, 2},
		{Alloc, 3, []string{"", "", "", "c"}, 3}, {Alloc, 2, []string{"", "", "", "c"}, 0}, {Alloc, 4, []string{"", "", "", "c"}, 0}, {Alloc, 9, nil, 0}, {Free, 9, nil, 9}, {Cycle, 1, []string{"", "a"}, 1},
	} {
		if got := f.aux(&Event{Kind: c.kind, Aux: c.aux, Stream: 8}, c.labels); got != c.want {
			t.Errorf("%v %d of %q is %d, want %d", c.kind, c.aux, c.labels, got, c.want)
		}
	}
}

// A brittle writer takes so many writes, and then no more.
type brittle struct{ left int }

func (w *brittle) Write(b []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, errSpent
	}
	return len(b), nil
}

// TestWriterSaysWhere: a write that fails is named by the event, and is the error of every later call.
func TestWriterSaysWhere(t *testing.T) {
	for n, want := range []string{"event 0", "event 0", "event 0", "event 0", "event 2048", "the end of the stream"} {
		w, err := NewWriter(&brittle{n}, &Trace{})
		if err == nil {
			_, err = w.WriteBatch(make([]Event, 3000), nil)
			for range 2 {
				closed := w.Close()
				if err == nil {
					err = closed
				}
				if _, again := w.WriteBatch(make([]Event, 1), nil); closed != err || again != err {
					t.Errorf("after %v: %v, %v", err, closed, again)
				}
			}
		}
		if err == nil || err.Error() != "trace: write at "+want+": spent" || !errors.Is(err, errSpent) {
			t.Errorf("after %d writes: %v", n, err)
		}
	}
	w, _ := NewWriter(io.Discard, &Trace{})
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if n, err := w.WriteBatch(make([]Event, 1), nil); n != 0 || err != errClosed {
		t.Errorf("%d events after Close, %v", n, err)
	}
}
