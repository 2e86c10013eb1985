package torchsnap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
)

const opStop = '.'

// step executes one opcode. The opcodes of all protocols are described in Python's
// pickletools. Those that could execute code are in the table refused.
func (m *machine) step(op byte) error {
	switch op {
	// These occur in snapshots, the most frequent first.
	case 'h': // BINGET
		return m.get(m.length(1))
	case 'j': // LONG_BINGET
		return m.get(m.length(4))
	case 0x94: // MEMOIZE
		return m.put(uint64(m.memo.size), nil)
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
	case 'X', 'T': // BINUNICODE, BINSTRING
		return m.pushText(m.length(4))
	case 'U': // SHORT_BINSTRING
		return m.pushText(m.length(1))
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
	case '0': // POP
		return m.discard()
	case '1', 0x90: // POP_MARK, ADDITEMS
		return m.forget(m.popMark())
	case '2': // DUP
		v, err := m.bare()
		if err != nil {
			return err
		}
		return m.push(v)
	case 'd': // DICT
		return m.whole(m.pushDict, m.set)
	case 'l': // LIST
		return m.whole(m.pushList, m.extend)
	}
	return m.stepLine(op)
}

// stepLine executes the opcodes whose argument is a line of text: protocol 0.
func (m *machine) stepLine(op byte) error {
	if name, ok := refused[op]; ok {
		return m.refuse(name)
	}
	switch op {
	case 'I', 'L', 'F', 'S', 'V', 'g', 'p':
	default:
		return fmt.Errorf("unknown opcode 0x%02x", op)
	}
	b, err := m.line()
	if err != nil {
		return err
	}
	switch op {
	case 'S': // STRING, quoted
		if len(b) < 2 || b[0] != b[len(b)-1] || (b[0] != '\'' && b[0] != '"') {
			return fmt.Errorf("string without quotes: %.40q", b)
		}
		return m.push(m.intern(b[1 : len(b)-1]))
	case 'V': // UNICODE; escapes stay as they are: no word of a snapshot has one
		return m.push(m.intern(b))
	case 'F': // FLOAT
		return m.push(value{})
	case 'I', 'L': // INT and LONG, decimal
		return m.decimal(b)
	}
	key, err := strconv.ParseUint(string(b), 10, 63)
	if err != nil {
		err = fmt.Errorf("memo key %.40q is no number", b)
	}
	if op == 'g' { // GET
		return m.get(key, err)
	}
	return m.put(key, err) // PUT
}

// refused are the opcodes that use or call something outside the file.
var refused = map[byte]string{
	'c': "GLOBAL", 0x93: "STACK_GLOBAL", 'i': "INST", 'o': "OBJ", 0x81: "NEWOBJ", 0x92: "NEWOBJ_EX",
	'R': "REDUCE", 'b': "BUILD", 'P': "PERSID", 'Q': "BINPERSID",
	0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
}

// refuse returns the error for an opcode that is not plain data. It names the
// global if there is one.
func (m *machine) refuse(opcode string) error {
	global := ""
	switch opcode {
	case "GLOBAL", "INST":
		module, _ := m.line()
		global = " " + string(module)
		name, _ := m.line()
		global += "." + string(name)
	case "STACK_GLOBAL":
		if two, err := m.pop(2); err == nil && two[0].kind == kText && two[1].kind == kText {
			global = " " + m.texts[two[0].n] + "." + m.texts[two[1].n]
		}
	}
	return fmt.Errorf("opcode %s%s: a snapshot is plain data, and nothing else is read", opcode, global)
}

func (m *machine) proto() error {
	b, err := m.bytes(1)
	if err == nil && b[0] > 5 {
		err = fmt.Errorf("pickle protocol %d (0 to 5 are known)", b[0])
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

// decimal pushes the integer of an INT or LONG line.
func (m *machine) decimal(b []byte) error {
	n, err := strconv.ParseInt(string(bytes.TrimSuffix(b, []byte{'L'})), 10, 64)
	if ne, ok := err.(*strconv.NumError); ok && ne.Err == strconv.ErrRange {
		return m.push(value{kind: kBig})
	}
	if err != nil {
		return fmt.Errorf("integer %.40q is no number", b)
	}
	return m.push(value{kind: kInt, n: n})
}

func (m *machine) tuple(items []value, err error) error {
	if err = m.forget(items, err); err != nil {
		return err
	}
	return m.push(value{})
}

// discard is POP, which also removes a mark with nothing above it.
func (m *machine) discard() error {
	if n := len(m.marks); n > 0 && m.marks[n-1] == len(m.stack) {
		m.marks = m.marks[:n-1]
		return nil
	}
	return m.forget(m.pop(1))
}
