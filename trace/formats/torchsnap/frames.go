package torchsnap

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

// Bounds on the stacks of a snapshot. A snapshot with Python stacks has tens of
// different ones, with C++ stacks some hundreds.
const (
	maxFrames    = 1 << 20  // dicts that are frames
	maxStacks    = 1 << 16  // different stacks; more are otherStacks
	maxDepth     = 96       // frames of a stack that are kept: the innermost
	maxFrameName = 128      // bytes of a function's name in a label
	maxLabel     = 8 << 10  // bytes of a label; outer frames are left out
	maxLabels    = 16 << 20 // bytes of all labels; more are otherStacks
	otherStacks  = "(too many sites)"
)

// stacks are the stacks of a snapshot: lists of frames under the key "frames".
// PyTorch writes each different frame once and refers to it from many lists; often
// several entries share one list. So frames and lists have numbers, for the memo.
type stacks struct {
	budget *recording.Budget
	frames []frame
	lists  []uint32 // the stack of each list; that of the last one is set by close
	open   []byte   // the frames of the last list, 4 bytes each

	sameFrame map[frame]uint32  // number of the first frame like it
	sameStack map[string]uint32 // number of a stack, by its frames
	byNumber  []labelledStack   // the first is the empty stack
}

// A frame is one call in a stack.
type frame struct {
	name, file uint32 // indices in texts
	line       int32
}

// A labelledStack is a stack, and its label once something has asked for it.
type labelledStack struct {
	frames  string
	label   uint32
	labeled bool
}

// pushFrame pushes a dict of a list of frames.
func (m *machine) pushFrame() error {
	s := &m.stacks
	if len(s.frames) >= maxFrames {
		return m.push(value{})
	}
	m.budget.Hold(64)
	s.frames = append(s.frames, frame{name: textLost, file: textLost})
	return m.push(value{kind: kFrame, n: int64(len(s.frames) - 1)})
}

// setFrame puts pairs of keys and values into frame n.
func (m *machine) setFrame(n int64, items []value) {
	f := &m.stacks.frames[n]
	for i := 0; i < len(items); i += 2 {
		key, v := items[i], items[i+1]
		switch {
		case key.kind != kText:
		case key.n == fName && v.kind == kText:
			f.name = uint32(v.n)
		case key.n == textFile && v.kind == kText:
			f.file = uint32(v.n)
		case key.n == textLine && v.kind == kInt && v.n > 0 && v.n < 1<<31:
			f.line = int32(v.n)
		}
	}
}

// newList returns the number of a list of frames that is about to be filled.
func (s *stacks) newList() int64 {
	s.close()
	s.lists = append(s.lists, 0)
	s.budget.Hold(4)
	return int64(len(s.lists)-1)<<listBits | listFrames
}

// extendFrames adds a frame to a list. It leaves out machinery, and does nothing if
// the list is closed.
func (m *machine) extendFrames(list int64, v value) {
	s := &m.stacks
	if v.kind != kFrame || int(list>>listBits) != len(s.lists)-1 || len(s.open) >= 4*maxDepth {
		return
	}
	f := s.frames[v.n]
	n, ok := s.sameFrame[f]
	if !ok {
		if s.sameFrame == nil {
			s.sameFrame = make(map[frame]uint32)
		}
		n = uint32(v.n)
		if isMachinery(m.texts[f.name], m.texts[f.file]) {
			n = skipFrame
		}
		s.sameFrame[f] = n
	}
	if n != skipFrame {
		s.open = binary.LittleEndian.AppendUint32(s.open, n)
	}
}

// skipFrame is the number of frames that are left out.
const skipFrame = 1<<32 - 1

// close finds the number of the stack that the last list holds.
func (s *stacks) close() {
	if len(s.open) == 0 {
		return
	}
	n, ok := s.sameStack[string(s.open)]
	if !ok {
		if s.sameStack == nil {
			s.sameStack = make(map[string]uint32)
			s.byNumber = make([]labelledStack, 1)
		}
		if len(s.byNumber) > maxStacks {
			s.open = s.open[:0]
			s.lists[len(s.lists)-1] = 1<<32 - 1
			return
		}
		n = uint32(len(s.byNumber))
		frames := string(s.open)
		s.sameStack[frames] = n
		s.byNumber = append(s.byNumber, labelledStack{frames: frames})
		s.budget.Hold(int64(len(frames)) + 96)
	}
	s.lists[len(s.lists)-1] = n
	s.open = s.open[:0]
}

// stackLabel returns the label of the record's stack, or 0 if it has none.
func (d *decoder) stackLabel(r *record) uint32 {
	v, ok := r.get(fFrames)
	if !ok || v.kind != kList || v.n&(1<<listBits-1) != listFrames {
		return 0
	}
	st := &d.stacks
	st.close()
	n := st.lists[v.n>>listBits]
	if n == 0 {
		return 0
	}
	if int(n) >= len(st.byNumber) {
		return d.labels.Label(otherStacks)
	}
	x := &st.byNumber[n]
	if !x.labeled {
		x.label, x.labeled = d.labelStack(x.frames), true
	}
	return x.label
}

func (d *decoder) labelStack(frames string) uint32 {
	text := d.stackText(frames)
	if text == "" {
		return 0
	}
	if n, ok := d.labels.Lookup(text); ok {
		return n
	}
	if d.labelText+len(text) > maxLabels {
		return d.labels.Label(otherStacks)
	}
	d.labelText += len(text)
	return d.labels.Label(text)
}

// stackText returns a stack as the label of an Alloc: see package trace/pprof. Many
// Python functions are called forward, so the module's name comes first.
func (d *decoder) stackText(frames string) string {
	var b strings.Builder
	for ; len(frames) >= 4; frames = frames[4:] {
		f := d.stacks.frames[binary.LittleEndian.Uint32([]byte(frames[:4]))]
		name, file := d.frameText(f.name), d.frameText(f.file)
		if file == "??" {
			file = ""
		}
		module, python := strings.CutSuffix(path.Base(file), ".py")
		if python {
			name = module + "." + strings.Trim(name, "<>") // pprof takes <module> for a template's arguments
		}
		line := shorten(cmp.Or(withoutArguments(name), "(no name)"), maxFrameName)
		if file != "" {
			line = fmt.Sprintf("%s\t%s:%d", line, file, f.line)
		}
		if b.Len()+1+len(line) > maxLabel {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	return b.String()
}

// frameText returns a text as one line of valid UTF-8.
func (d *decoder) frameText(i uint32) string {
	if i == textLost {
		return ""
	}
	text := strings.ToValidUTF8(d.texts[i], "\ufffd")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text))
}

// withoutArguments removes the arguments from a C++ name.
func withoutArguments(name string) string {
	const anonymous = "(anonymous namespace)"
	for at := 0; ; at += len(anonymous) {
		i := strings.IndexByte(name[at:], '(')
		at += i
		switch {
		case i < 0 || at == 0 && !strings.HasPrefix(name, anonymous):
			return name
		case !strings.HasPrefix(name[at:], anonymous):
			return name[:at]
		}
	}
}

// shorten cuts a text to at most n bytes, but not within a rune.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-3], "") + "..."
}

// machinery lists the beginnings of the names of functions that took the stack or
// belong to the Python interpreter. In a list with C++ and Python frames they
// stand between the functions of the program.
var machinery = []string{
	"torch::unwind::", "torch::CapturedTraceback::", "torch::cuda::(anonymous namespace)::gather",
	"Py", "_Py", "_start", "__libc_start_main", "__libc_init_first",
}

func isMachinery(name, file string) bool {
	if strings.HasSuffix(file, ".py") {
		return false
	}
	for _, m := range machinery {
		if strings.HasPrefix(name, m) {
			return true
		}
	}
	return false
}
