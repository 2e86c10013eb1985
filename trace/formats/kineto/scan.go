package kineto

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	maxDepth  = 200      // of nested values that are skipped
	maxNumber = 64       // bytes
	maxString = 16 << 20 // bytes; traces hold stacks and module lists
)

// A scanner reads JSON from a stream, value by value. It keeps one buffer and
// builds no values. Bytes that it returns are valid until its next call.
type scanner struct {
	r       io.Reader
	buf     []byte
	pos     int   // of the next byte in buf
	end     int   // of the bytes in buf
	offset  int64 // of buf[0] in the stream
	scratch []byte
}

func newScanner(r io.Reader) *scanner { return &scanner{r: r, buf: make([]byte, 64<<10)} }

// fail adds the place in the file to err.
func (s *scanner) fail(err error) error {
	return fmt.Errorf("kineto: byte %d: %w", s.offset+int64(s.pos), err)
}

func (s *scanner) syntax(want string) error {
	if s.pos < s.end {
		return s.fail(fmt.Errorf("%q where %s is expected", s.buf[s.pos], want))
	}
	return s.fail(fmt.Errorf("%w where %s is expected", io.ErrUnexpectedEOF, want))
}

// fill reads more bytes, once all of buf has been used.
func (s *scanner) fill() error {
	s.offset += int64(s.end)
	s.pos, s.end = 0, 0
	for range 100 {
		n, err := s.r.Read(s.buf)
		if n > 0 {
			s.end = n
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// space reads over white space. At the end of the stream it returns io.EOF.
func (s *scanner) space() error {
	for {
		for ; s.pos < s.end; s.pos++ {
			if c := s.buf[s.pos]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
				return nil
			}
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
}

// peek returns the next byte that is not white space, without reading it.
func (s *scanner) peek() (byte, error) {
	if err := s.space(); err != nil {
		return 0, s.fail(ended(err))
	}
	return s.buf[s.pos], nil
}

func ended(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// expect reads the byte c.
func (s *scanner) expect(c byte, what string) error {
	got, err := s.peek()
	if err != nil {
		return err
	}
	if got != c {
		return s.syntax(what)
	}
	s.pos++
	return nil
}

// more says whether the list or object that ends with close has a further item. It
// reads the comma before that item, or the end.
func (s *scanner) more(first bool, close byte) (bool, error) {
	c, err := s.peek()
	if err != nil {
		return false, err
	}
	if c == close {
		s.pos++
		return false, nil
	}
	if first {
		return true, nil
	}
	return true, s.expect(',', "a comma or the end")
}

// key reads the next key of an object whose opening brace has been read; ok is
// false at the end of the object.
func (s *scanner) key(first bool) (key []byte, ok bool, err error) {
	if ok, err = s.more(first, '}'); !ok || err != nil {
		return nil, false, err
	}
	if key, err = s.text(); err != nil {
		return nil, false, err
	}
	// The colon may lie beyond the buffer: then save the key before it is refilled.
	if s.pos < s.end && s.buf[s.pos] == ':' {
		s.pos++
		return key, true, nil
	}
	s.scratch = append(s.scratch[:0], key...)
	return s.scratch, true, s.expect(':', "a colon")
}

// text reads a string.
func (s *scanner) text() ([]byte, error) {
	if err := s.expect('"', "a string"); err != nil {
		return nil, err
	}
	b := s.buf[s.pos:s.end]
	for i, c := range b {
		if c == '"' {
			s.pos += i + 1
			return b[:i], nil
		}
		if c == '\\' || c < ' ' {
			break
		}
	}
	return s.textSlow()
}

// textSlow reads the rest of a string that has escapes or goes on after the buffer.
func (s *scanner) textSlow() ([]byte, error) {
	out := s.scratch[:0]
	defer func() { s.scratch = out[:0] }()
	for {
		c, err := s.byte()
		switch {
		case err != nil:
			return nil, err
		case c == '"':
			return out, nil
		case c < ' ':
			s.pos--
			return nil, s.fail(fmt.Errorf("control character %q in a string", c))
		case c == '\\':
			if out, err = s.escape(out); err != nil {
				return nil, err
			}
		default:
			out = append(out, c)
		}
		if len(out) > maxString {
			return nil, s.fail(fmt.Errorf("string of over %d bytes", maxString))
		}
	}
}

// byte reads one byte.
func (s *scanner) byte() (byte, error) {
	if s.pos == s.end {
		if err := s.fill(); err != nil {
			return 0, s.fail(ended(err))
		}
	}
	s.pos++
	return s.buf[s.pos-1], nil
}

const (
	escapes   = `"\/bfnrt`
	escapedBy = "\"\\/\b\f\n\r\t"
)

func (s *scanner) escape(out []byte) ([]byte, error) {
	c, err := s.byte()
	if err != nil {
		return out, err
	}
	if i := bytes.IndexByte([]byte(escapes), c); i >= 0 {
		return append(out, escapedBy[i]), nil
	}
	if c != 'u' {
		s.pos--
		return out, s.fail(fmt.Errorf("unknown escape \\%c", c))
	}
	var r rune
	for range 4 {
		c, err := s.byte()
		if err != nil {
			return out, err
		}
		i := bytes.IndexByte([]byte("0123456789abcdef"), c|0x20)
		if i < 0 || c < '0' {
			s.pos--
			return out, s.fail(fmt.Errorf("%q in a \\u escape", c))
		}
		r = r<<4 | rune(i)
	}
	return utf8.AppendRune(out, r), nil // a surrogate becomes U+FFFD: no word that matters has one
}

// number reads a number and returns its text.
func (s *scanner) number() ([]byte, error) {
	if _, err := s.peek(); err != nil {
		return nil, err
	}
	out := s.scratch[:0]
	for {
		b := s.buf[s.pos:s.end]
		n := 0
		for n < len(b) && isNumber(b[n]) {
			n++
		}
		s.pos += n
		if n < len(b) && len(out) == 0 { // all of it in the buffer
			out = b[:n]
			break
		}
		out = append(out, b[:n]...)
		s.scratch = out[:0]
		if n < len(b) {
			break
		}
		if len(out) > maxNumber {
			break
		}
		if err := s.fill(); err != nil {
			return nil, s.fail(ended(err))
		}
	}
	if len(out) > maxNumber || !validNumber(out) {
		return nil, s.fail(fmt.Errorf("%.64q is no number", out))
	}
	return out, nil
}

func isNumber(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '.' || c == '+' || c == 'e' || c == 'E'
}

// validNumber checks the grammar of JSON: -?int(.digits)?([eE][+-]?digits)?.
func validNumber(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte{'-'})
	n := digits(b)
	if n == 0 || n > 1 && b[0] == '0' {
		return false
	}
	if b = b[n:]; len(b) > 0 && b[0] == '.' {
		n := digits(b[1:])
		if n == 0 {
			return false
		}
		b = b[1+n:]
	}
	if len(b) > 0 && b[0]|0x20 == 'e' {
		b = b[1:]
		if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		n := digits(b)
		return n > 0 && n == len(b)
	}
	return len(b) == 0
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	return n
}

// skip reads over a value of any kind.
func (s *scanner) skip() error { return s.skipAt(0) }

func (s *scanner) skipAt(depth int) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return s.fail(fmt.Errorf("values nested over %d deep", maxDepth))
	}
	switch {
	case c == '"':
		_, err = s.text()
		return err
	case c == '{':
		s.pos++
		return s.skipObject(depth)
	case c == '[':
		s.pos++
		return s.skipList(depth)
	case c == '-' || '0' <= c && c <= '9':
		_, err = s.number()
		return err
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.syntax("a value")
}

func (s *scanner) skipObject(depth int) error {
	for first := true; ; first = false {
		if _, ok, err := s.key(first); !ok || err != nil {
			return err
		}
		if err := s.skipAt(depth + 1); err != nil {
			return err
		}
	}
}

func (s *scanner) skipList(depth int) error {
	for first := true; ; first = false {
		if ok, err := s.more(first, ']'); !ok || err != nil {
			return err
		}
		if err := s.skipAt(depth + 1); err != nil {
			return err
		}
	}
}

func (s *scanner) literal(word string) error {
	for i := range len(word) {
		c, err := s.byte()
		if err != nil {
			return err
		}
		if c != word[i] {
			s.pos--
			return s.syntax(word)
		}
	}
	return nil
}

// done reads the stream to its end, where a packed one has its checksum. Only white
// space may follow.
func (s *scanner) done() error {
	switch err := s.space(); err {
	case nil:
		return s.syntax("the end of the file")
	case io.EOF:
		return nil
	default:
		return s.fail(err)
	}
}
