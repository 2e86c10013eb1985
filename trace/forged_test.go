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

// TestTypesOfColumns: a column in a type that it may not have is refused by name.
func TestTypesOfColumns(t *testing.T) {
	for _, c := range []struct {
		column int
		kind   uint8
		of     flat
		dict   any
		want   string
	}{
		{colTime, typeText, nil, nil, `column "time" is utf8, want duration[ns]`}, {colTime, typeDuration, flat{int16(2)}, nil, `column "time" is another type, want duration[ns]`},
		{colTime, typeDuration, nil, nil, `column "time" is another type`}, {colTime, typeInt, flat{int32(64), false}, nil, `column "time" is uint64`}, {colTime, typeInt, flat{int32(64), true}, nil, "<nil>"},
		{colKind, typeText, nil, nil, `column "kind" is utf8, want words`}, {colKind, typeInt, flat{int32(8), true}, nil, `column "kind" is another type`}, {colKind, typeInt, flat{int32(8), false}, nil, "<nil>"},
		{colSpace, typeText, nil, flat{int64(1), integer(uint32s)}, `column "space" is another type`}, {colSpace, typeInt, integer(int64s), flat{int64(1), integer(uint8s)}, `column "space" is another type`},
		{colID, typeInt, flat{int32(64), true}, nil, `column "id" is int64, want uint64`}, {colBytes, typeDuration, flat{unitNano}, nil, `column "bytes" is duration[ns], want int64`},
		{colStream, typeInt, flat{int32(16), false}, nil, `column "stream" is another type, want uint32`}, {colAux, 3, nil, nil, `column "aux" is another type`}, {colAux, 12, nil, nil, "column 7 is nested, or of a type that is not read"},
		{colLabel, 21, nil, nil, "column 8 is nested"}, {colLabel, 0, nil, nil, "column 8 is nested"}, {colLabel, 20, nil, nil, `column "label" is another type, want utf8`}, {colLabel, typeText, nil, flat{int64(1), integer(uint8s)}, `column "label" is words`},
	} {
		all := messages(&Trace{})[:1]
		of := fieldsOf(all)[c.column]
		of[2], of[3], of[4] = c.kind, c.of, c.dict
		if c.of == nil {
			of[3] = flat{}
		}
		file, _ := fileOf(all)
		if _, err := Read(bytes.NewReader(file)); !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestForged: each fault of a message, by the message's place and in words.
func TestForged(t *testing.T) {
	type all = []*message
	schema := func(a all) flat { return a[0].of.(flat) }
	kindsOf := func(a all) flat { return a[1].of.(flat) }
	batch := batchOf
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
		`unknown kind "allok" (want one of alloc, drop, free, sync, cycle, refuse, reserve, release, mark, decision)`: {1, func(a all) all { word(a, "allok"); return a }},
		`batch 0: 9 columns in 19 buffers, want 9 in 19`:                                                              {3, func(a all) all { a[3].of = append(batch(a), []extent{{1, 1}}); return a }},
		`batch 0: rows: 268435457 over the bound of the reader of 268435456`:                                          {3, func(a all) all { batch(a)[0] = int64(1<<28 + 1); return a }},
		`batch 0: column 0 has 10 rows, its batch 11`:                                                                 {3, func(a all) all { batch(a)[0] = int64(11); return a }},
		`batch 0: column 8 has 9 rows, its batch 10`:                                                                  {3, func(a all) all { batch(a)[1].([]extent)[8].at = 9; return a }},
		`batch 0: is packed with LZ4, want zstd or nothing`:                                                           {3, func(a all) all { batch(a)[3] = flat{uint8(0), uint8(0)}; return a }},
		`batch 0: column "bytes": has nulls`:                                                                          {3, func(a all) all { batch(a)[1].([]extent)[colBytes].length = 1; return a }},
		`batch 0: column "time": 79 bytes for 10 rows`:                                                                {3, func(a all) all { buffers(a)[2*colTime+1].length--; return a }},
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
}

// packed sets a codec that packs zeros alone, and returns a file of events of which nothing is set.
func packed(t *testing.T, events int) []byte {
	t.Helper()
	UseZstd(Codec{
		Compress: func(dst, data []byte) []byte {
			if left := bytes.TrimLeft(data, "\x00"); len(left) == 0 {
				return append(dst, fmt.Sprintf("z%d", len(data))...)
			}
			return append(append(dst, 'd'), data...)
		},
		Decompress: func(dst, frame []byte) ([]byte, error) {
			zeros := 0
			if n, _ := fmt.Sscanf(string(frame[:min(len(frame), 20)]), "z%d", &zeros); n == 1 {
				return append(dst, make([]byte, min(zeros, cap(dst)))...), nil
			}
			if frame[0] != 'd' {
				return nil, errors.New("no frame")
			}
			return append(dst, frame[1:][:min(len(frame)-1, cap(dst))]...), nil
		},
	})
	t.Cleanup(func() { zstd.Store(nil) })
	var b bytes.Buffer
	if err := Write(&b, &Trace{Events: make([]Event, events)}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPackedBuffers: what the first packed buffer of a file may hold, and each of its faults.
func TestPackedBuffers(t *testing.T) {
	packed(t, 0)
	times := make([]byte, 80)
	for i := range 10 {
		little.PutUint64(times[8*i:], uint64(100+i))
	}
	frame := zstd.Load().Compress(nil, times)
	buffer := func(size int64, frame []byte) []byte { return append(little.AppendUint64(nil, uint64(size)), frame...) }
	whole := messages(ten())
	for _, c := range []struct {
		want string
		data []byte
	}{
		{"", buffer(80, frame)}, {"", buffer(-1, times)},
		{"0 bytes for 10 rows", nil},
		{"buffer 1 has 7 bytes, want its length", times[:7]},
		{"buffer 1: unpacks to 80 bytes, want 81", buffer(81, frame)},
		{"buffer 1: unpacks to 79 bytes, want 80", buffer(80, zstd.Load().Compress(nil, times[:79]))},
		{"buffer 1: no frame", buffer(80, times[8:])},
		{"bytes of a record batch: -2 over the bound of the reader of 268435456", buffer(-2, frame)},
		{"bytes of a record batch: 268435457 over the bound of the reader of 268435456", buffer(256<<20+1, frame)},
	} {
		all := slices.Clone(whole)
		b := batchOf(all)
		body, buffers := slices.Clone(c.data), []extent{{}, {0, int64(len(c.data))}}
		for _, at := range b[2].([]extent)[2:] { // the others are not packed, each behind a length of -1
			data := whole[3].body[at.at:][:at.length]
			if len(data) > 0 {
				data = buffer(-1, data)
			}
			buffers = append(buffers, extent{int64(len(body)), int64(len(data))})
			body = append(body, data...)
		}
		all[3] = &message{kind: batchMessage, of: flat{b[0], b[1], buffers, flat{codecZstd, uint8(0)}}, body: body}
		file, _ := fileOf(all)
		got, err := Read(bytes.NewReader(file))
		if c.want == "" && (err != nil || !slices.Equal(got.Events, ten().Events)) || c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), `column "time": `+c.want)) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func batchOf(all []*message) flat { return all[3].of.(flat) }

// A purse is a reader with a budget.
type purse struct {
	*bytes.Reader
	left int64 // bytes that may still be held
}

var errSpent = errors.New("spent")

func (p *purse) Hold(bytes int64) { p.left -= bytes }

func (p *purse) Err() error {
	if p.left < 0 {
		return errSpent
	}
	return nil
}

// TestBounds: each bound refuses a file that is one over it, and takes one that is not. What a reader holds is counted: 48 bytes an
// event, and for a label its text and 64 bytes.
func TestBounds(t *testing.T) {
	file := new(bytes.Buffer)
	if err := Write(file, ten()); err != nil {
		t.Fatal(err)
	}
	bomb, meta := packed(t, 2<<20), int64(len("eagergc.version2eagergc.nameteneagergc.start1970-01-01T00:00:01.000000002Zeagergc.meta.kv"))
	for most, ok := range map[int64]bool{3: true, 2: false} {
		l := usualBounds
		l.labels = most
		if _, err := l.read(bytes.NewReader(file.Bytes())); errors.Is(err, errBound) == ok {
			t.Errorf("%d bytes of labels: %v", most, err)
		}
	}
	b, _ := flat{nil, nil, schemaOf(ten())[2]}.appendTo(nil)
	for most, ok := range map[int64]bool{meta: true, meta - 1: false} {
		if err := new(Trace).provenance(rootOf(b).list(2, 4), most); (err == nil) != ok {
			t.Errorf("%d bytes of metadata: %v", most, err)
		}
	}
	for ratio, ok := range map[int64]bool{1 << 10: true, 8: false} { // of a file of 200 KB with 88 MB
		l := usualBounds
		l.ratio = ratio
		if _, err := l.read(bytes.NewReader(bomb)); (err == nil) != ok || !ok && !strings.Contains(err.Error(), "unpacked bytes") {
			t.Errorf("%d bytes for each of %d: %v", ratio, len(bomb), err)
		}
	}
	p := &purse{bytes.NewReader(file.Bytes()), 10*48 + 1 + 64 + 2 + 64}
	if _, err := Read(p); err != nil || p.left != 0 {
		t.Errorf("%d bytes of what is held are not counted: %v", p.left, err)
	}
	if _, err := Read(&purse{bytes.NewReader(bomb), 16<<20 + 30*int64(len(bomb))}); !errors.Is(err, errSpent) {
		t.Errorf("%d bytes of which 100 MB of events are made: error %v", len(bomb), err)
	}
}

func FuzzRead(f *testing.F) {
	file, _ := fileOf(messages(ten()))
	f.Add(file)
	f.Add(file[:700])
	small := usualBounds
	small.batch, small.header = 1<<20, 1<<16
	f.Fuzz(func(t *testing.T, file []byte) {
		tr, err := small.read(bytes.NewReader(file))
		if err != nil {
			if tr != nil && !errors.Is(err, ErrTruncated) {
				t.Fatalf("a trace comes with %v", err)
			}
			return
		}
		var b bytes.Buffer
		if err := Write(&b, tr); err != nil {
			t.Fatal(err)
		}
		if again, err := Read(&b); err != nil || !slices.EqualFunc(again.Events, tr.Events, func(now, was Event) bool {
			if was.Kind.Labelled() && again.Label(now) == tr.Label(was) {
				now.Aux = was.Aux // labels are numbered in the order of a file, and events are sorted
			}
			return now == was
		}) {
			t.Fatalf("a round trip changes the events: %v", err)
		}
	})
}
