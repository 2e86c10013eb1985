package torchsnap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

// Bounds on the memory that a pickle can cause. Real snapshots stay far below them, because Python's
// pickler adds items to a list or dict after every 1000.
const (
	maxStack   = 1 << 20 // values that are not yet in a container
	maxRecords = 1 << 14 // dicts that are not yet in a container
	maxMemoGap = 1 << 10 // memo keys skipped: picklers number them from 0, one by one
	memoPage   = 1 << 10 // keys
	maxTexts   = 1 << 16 // different strings that are kept
	maxText    = 1 << 10 // bytes of a string that is kept
)

// A kind is the type of a value.
type kind uint8

const (
	kOther kind = iota // does not matter: a tuple, bytes, a float, a container that is closed
	kInt               // n
	kBig               // an integer outside int64
	kText              // n is an index into texts
	kDict              // n is an index into records
	kList              // n is a list number
)

// A value is one item on the pickle's stack or in its memo.
type value struct {
	n    int64
	kind kind
}

// A machine reads a pickle of plain data, protocol 2 to 5. It does not build the whole value. When a
// dict is added to a list that matters, the machine gives the dict to item and forgets it. It holds
// only the open containers and the memo.
type machine struct {
	r       *bufio.Reader
	offset  int64 // of the next byte
	opcode  int64 // offset of the present opcode
	stack   []value
	marks   []int // heights of stack
	budget  *recording.Budget
	memo    []*[memoPage]int32 // texts by their keys, in pages that are never copied; notText: another value
	keys    int                // in the memo
	texts   []string           // the strings kept; first those of names
	index   map[string]int64   // of texts
	records []record
	spare   []int64 // records not in use
	lists
	item func(list int64, r *record) error
}

func newMachine(r io.Reader, b *recording.Budget, item func(int64, *record) error) *machine {
	m := &machine{r: bufio.NewReaderSize(r, 64<<10), budget: b, index: make(map[string]int64), item: item}
	for _, text := range append(names, words...) {
		m.intern([]byte(text))
	}
	return m
}

var errPop = errors.New("stack underflow")

// execute reads the pickle to its end, and then the stream to its end, where the checksum is.
func (m *machine) execute() error {
	for {
		m.opcode = m.offset
		op, err := m.r.ReadByte()
		if err != nil {
			return m.fail(ended(err))
		}
		m.offset++
		if op == opStop {
			break
		}
		if err := m.step(op); err != nil {
			return m.fail(err)
		}
	}
	if len(m.stack) != 1 || len(m.marks) != 0 || m.stack[0].kind != kDict {
		return m.fail(errors.New("the pickle is not one dict"))
	}
	if _, err := m.r.ReadByte(); err != io.EOF {
		if err == nil {
			err = errors.New("bytes after the end of the pickle")
		}
		return m.fail(err)
	}
	return nil
}

func (m *machine) fail(err error) error {
	return fmt.Errorf("torchsnap: byte %d: %w", m.opcode, err)
}

func ended(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// bytes returns the next n bytes, valid until the next read; n <= 64 KiB.
func (m *machine) bytes(n int) ([]byte, error) {
	b, err := m.r.Peek(n)
	if err != nil {
		return nil, ended(err)
	}
	m.r.Discard(n)
	m.offset += int64(n)
	return b, nil
}

// length reads a little-endian number of 1, 2, 4 or 8 bytes.
func (m *machine) length(size int) (uint64, error) {
	b, err := m.bytes(size)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[:], b)
	return binary.LittleEndian.Uint64(wide[:]), nil
}

// skip reads over n bytes. It allocates nothing, however large n is.
func (m *machine) skip(n uint64) error {
	if n > math.MaxInt64/2 {
		return fmt.Errorf("length %d is beyond any file", n)
	}
	got, err := m.r.Discard(int(n))
	m.offset += int64(got)
	if err == io.EOF {
		return fmt.Errorf("length %d, but only %d bytes are left: %w", n, got, io.ErrUnexpectedEOF)
	}
	return err
}

// blob reads over n bytes, and pushes a value for them.
func (m *machine) blob(n uint64, err error) error {
	if err == nil {
		err = m.skip(n)
	}
	if err != nil {
		return err
	}
	return m.push(value{})
}

// pushText reads a string of n bytes, and pushes it.
func (m *machine) pushText(n uint64, err error) error {
	switch {
	case err != nil:
		return err
	case n > maxText:
		if err := m.skip(n); err != nil {
			return err
		}
		return m.push(value{kind: kText, n: textLost})
	}
	b, err := m.bytes(int(n))
	if err != nil {
		return err
	}
	return m.push(m.intern(b))
}

func (m *machine) intern(b []byte) value {
	i, ok := m.index[string(b)]
	if !ok {
		if len(m.texts) >= maxTexts || len(b) > maxText {
			return value{kind: kText, n: textLost}
		}
		i = int64(len(m.texts))
		s := string(b)
		m.index[s] = i
		m.texts = append(m.texts, s)
		m.budget.Hold(int64(len(b)) + 80)
	}
	return value{kind: kText, n: i}
}

func (m *machine) push(v value) error {
	if len(m.stack) >= maxStack {
		return fmt.Errorf("more than %d values without a container", maxStack)
	}
	m.stack = append(m.stack, v)
	return nil
}

// floor is the height of the stack at the last mark. Values under a mark may not be popped.
func (m *machine) floor() int {
	if n := len(m.marks); n > 0 {
		return m.marks[n-1]
	}
	return 0
}

// pop takes n values off the stack; they are valid until the next push.
func (m *machine) pop(n int) ([]value, error) {
	h := len(m.stack) - n
	if h < m.floor() {
		return nil, errPop
	}
	top := m.stack[h:]
	m.stack = m.stack[:h]
	return top, nil
}

// popMark takes all values above the last mark off the stack, and the mark.
func (m *machine) popMark() ([]value, error) {
	if len(m.marks) == 0 {
		return nil, errPop
	}
	h := m.floor()
	m.marks = m.marks[:len(m.marks)-1]
	top := m.stack[h:]
	m.stack = m.stack[:h]
	return top, nil
}

func (m *machine) top() (value, error) {
	if len(m.stack) <= m.floor() {
		return value{}, errPop
	}
	return m.stack[len(m.stack)-1], nil
}

// notText stands in the memo for each value but a string. No snapshot refers a second time to a
// container that matters, and picklers give integers no key.
const notText = -1

// at returns the place of a key that the memo has.
func (m *machine) at(key uint64) *int32 { return &m.memo[key/memoPage][key%memoPage] }

// put gives the top of the stack a key in the memo.
func (m *machine) put(key uint64, err error) error {
	if err != nil {
		return err
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	if key > uint64(m.keys+maxMemoGap) {
		return fmt.Errorf("memo key %d after %d keys", key, m.keys)
	}
	for ; uint64(m.keys) <= key; m.keys++ {
		if m.keys%memoPage == 0 {
			m.memo = append(m.memo, new([memoPage]int32))
			m.budget.Hold(8 + 4*memoPage)
		}
		*m.at(uint64(m.keys)) = notText
	}
	if *m.at(key) = notText; v.kind == kText {
		*m.at(key) = int32(v.n)
	}
	return nil
}

func (m *machine) get(key uint64, err error) error {
	if err != nil {
		return err
	}
	switch {
	case key >= uint64(m.keys):
		return fmt.Errorf("memo has no key %d", key)
	case *m.at(key) == notText:
		return m.push(value{})
	}
	return m.push(value{kind: kText, n: int64(*m.at(key))})
}
