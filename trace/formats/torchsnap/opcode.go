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

// step executes one opcode. The opcodes are described in Python's pickletools. Those that could
// execute code are refused.
func (m *machine) step(op byte) error {
	switch op {
	// These occur in snapshots, the most frequent first.
	case 'h': // BINGET
		return m.get(m.length(1))
	case 'j': // LONG_BINGET
		return m.get(m.length(4))
	case 0x94: // MEMOIZE
		return m.put(uint64(len(m.memo)), nil)
	case 0x8a: // LONG1
		return m.long(m.length(1))
	case 'K': // BININT1
		return m.pushInt(m.length(1))
	case 0x8c: // SHORT_BINUNICODE
		return m.pushText(m.length(1))
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
	case 'M': // BININT2
		return m.pushInt(m.length(2))
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
	case 'q': // BINPUT
		return m.put(m.length(1))
	case 'r': // LONG_BINPUT
		return m.put(m.length(4))
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
	}
	return m.stepRare(op)
}

// stepRare executes the opcodes that are rare in snapshots.
func (m *machine) stepRare(op byte) error {
	switch op {
	case 'X': // BINUNICODE
		return m.pushText(m.length(4))
	case 0x8d: // BINUNICODE8
		return m.pushText(m.length(8))
	case 'B': // BINBYTES
		return m.blob(m.length(4))
	case 'C': // SHORT_BINBYTES
		return m.blob(m.length(1))
	case 0x8e, 0x96: // BINBYTES8, BYTEARRAY8
		return m.blob(m.length(8))
	case 0x8b: // LONG4
		return m.long(m.length(4))
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
