package torchsnap

import (
	"encoding/binary"
	"fmt"
)

const (
	opStop        = '.'
	leastProtocol = 2
	mostProtocol  = 5
)

// An argument is what an opcode does with a number in the file, of some bytes.
type argument struct {
	size int
	do   func(m *machine, n uint64, err error) error
}

// arguments are the opcodes that begin with a number, as Python's pickletools names them.
var arguments = [256]argument{
	'h':  {1, (*machine).get},      // BINGET
	'j':  {4, (*machine).get},      // LONG_BINGET
	'q':  {1, (*machine).put},      // BINPUT
	'r':  {4, (*machine).put},      // LONG_BINPUT
	'K':  {1, (*machine).pushInt},  // BININT1
	'M':  {2, (*machine).pushInt},  // BININT2
	0x8a: {1, (*machine).long},     // LONG1
	0x8b: {4, (*machine).long},     // LONG4
	0x8c: {1, (*machine).pushText}, // SHORT_BINUNICODE
	'X':  {4, (*machine).pushText}, // BINUNICODE
	0x8d: {8, (*machine).pushText}, // BINUNICODE8
	'C':  {1, (*machine).blob},     // SHORT_BINBYTES
	'B':  {4, (*machine).blob},     // BINBYTES
	0x8e: {8, (*machine).blob},     // BINBYTES8
	0x96: {8, (*machine).blob},     // BYTEARRAY8
}

// step executes one opcode. Those that could execute code are refused.
func (m *machine) step(op byte) error {
	if a := &arguments[op]; a.do != nil {
		n, err := m.length(a.size)
		return a.do(m, n, err)
	}
	switch op {
	case 0x94: // MEMOIZE
		return m.put(uint64(m.keys), nil)
	case '(': // MARK
		if len(m.marks) >= maxStack {
			return fmt.Errorf("more than %d marks", maxStack)
		}
		m.marks = append(m.marks, len(m.stack))
		return nil
	case '}': // EMPTY_DICT
		return m.pushDict()
	case 'u': // SETITEMS
		return m.set(m.popMark())
	case 'J': // BININT, signed
		n, err := m.length(4)
		return m.pushInt(uint64(int32(n)), err)
	case ']': // EMPTY_LIST
		return m.pushList()
	case 'e': // APPENDS
		return m.extend(m.popMark())
	case 'a': // APPEND
		return m.extend(m.pop(1))
	case 's': // SETITEM
		return m.set(m.pop(2))
	case 0x80: // PROTO
		return m.proto()
	case 0x95: // FRAME: its bytes follow as if it were not there
		_, err := m.bytes(8)
		return err
	case 'N', 0x88, 0x89, ')', 0x8f: // NONE, NEWTRUE, NEWFALSE, EMPTY_TUPLE, EMPTY_SET
		return m.push(value{})
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		return m.tuple(m.pop(int(op - 0x84)))
	case 't', 0x91: // TUPLE, FROZENSET
		return m.tuple(m.popMark())
	case 'G': // BINFLOAT
		return m.blob(8, nil)
	case 0x90: // ADDITEMS
		return m.forget(m.popMark())
	}
	return fmt.Errorf("opcode 0x%02x: a snapshot is plain data, and nothing else is read", op)
}

func (m *machine) proto() error {
	b, err := m.bytes(1)
	if err == nil && (b[0] < leastProtocol || b[0] > mostProtocol) {
		err = fmt.Errorf("pickle protocol %d (%d to %d are known)", b[0], leastProtocol, mostProtocol)
	}
	return err
}

func (m *machine) pushInt(n uint64, err error) error {
	if err != nil {
		return err
	}
	return m.push(value{kind: kInt, n: int64(n)})
}

// long pushes an integer in two's complement, of n bytes.
func (m *machine) long(n uint64, err error) error {
	if err == nil && n > 64<<10 {
		err = fmt.Errorf("integer of %d bytes", n)
	}
	if err != nil {
		return err
	}
	b, err := m.bytes(int(n))
	if err != nil {
		return err
	}
	return m.push(twos(b))
}

// twos reads a little-endian integer in two's complement.
func twos(b []byte) value {
	var wide [8]byte
	var sign byte
	if len(b) > 0 && b[len(b)-1] >= 0x80 {
		sign = 0xff
	}
	for len(b) > 8 && b[len(b)-1] == sign && b[len(b)-2]&0x80 == sign&0x80 {
		b = b[:len(b)-1]
	}
	if len(b) > 8 {
		return value{kind: kBig}
	}
	for i := copy(wide[:], b); i < 8; i++ {
		wide[i] = sign
	}
	return value{kind: kInt, n: int64(binary.LittleEndian.Uint64(wide[:]))}
}

func (m *machine) tuple(items []value, err error) error {
	if err = m.forget(items, err); err != nil {
		return err
	}
	return m.push(value{})
}
