package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/eagergc/eagergc/pool/array"
)

// Shared as an argument of [Launch] is the bytes of dynamic shared memory per block.
type Shared int

// Launch runs a kernel on s with these arguments: it queues the work and returns. A nil s is the
// default stream. Arguments are arrays, numbers, bools, and [Shared]. The kernel gets the address of
// an array. Arrays are used as by [With]: the work comes after all work that used them before, and
// their memory stays until it is done.
//
// If the kernel comes from PTX text, numbers are converted to the declared types: 0.5 and n serve
// for a .f32 and a .u32. Then Launch fails if a number does not fit, if an array is given for a
// number, or if the count differs. A kernel of a cubin declares nothing: numbers keep their own
// types, and an int has 64 bits.
func Launch(k *Kernel, s *Stream, grid, block Dim, args ...any) error {
	if k == nil {
		return errors.New("cuda: launch of no kernel")
	}
	if s == nil {
		s = k.dev.Default()
	}
	l := launching{kernel: k, stream: s, grid: grid, block: block, packed: make([]byte, 0, 64)}
	for _, a := range args {
		if bytes, ok := a.(Shared); ok {
			l.shared = int(bytes)
		} else {
			l.args = append(l.args, a)
		}
	}
	if k.params != nil && len(k.params) != len(l.args) {
		return fmt.Errorf("cuda: kernel %s takes %d arguments, not %d", k.name, len(k.params), len(l.args))
	}
	return l.from(0)
}

// launching is one call of Launch.
type launching struct {
	kernel      *Kernel
	stream      *Stream
	grid, block Dim
	shared      int
	args        []any
	packed      []byte
}

// from takes the arguments from i on, and launches. It holds the arrays meanwhile.
func (l *launching) from(i int) error {
	if i == len(l.args) {
		return l.launch()
	}
	wrong := func(err error) error {
		return fmt.Errorf("cuda: argument %d of kernel %s: %w", i+1, l.kernel.name, err)
	}
	param := ""
	if l.kernel.params != nil {
		param = l.kernel.params[i]
	}
	switch a := l.args[i].(type) {
	case interface {
		Reach(func(array.Memory) error) error
		Len() int
	}:
		if param != "" && !strings.HasSuffix(param, "64") {
			return wrong(fmt.Errorf("an array, want a .%s", param))
		}
		held, inner := false, error(nil)
		err := a.Reach(func(m array.Memory) error {
			return use(m, l.stream, func(at uintptr) error {
				held = true
				l.pack(uint64(at))
				inner = l.from(i + 1)
				return inner
			})
		})
		switch {
		case err == nil && !held:
			return wrong(errors.New("the zero array has no memory"))
		case err != nil && inner == nil:
			return wrong(err)
		}
		return err
	default:
		n, err := number(a, param)
		if err != nil {
			return wrong(err)
		}
		l.pack(n)
	}
	return l.from(i + 1)
}

// launch queues the work with the arguments that are packed.
func (l *launching) launch() error {
	k, s := l.kernel, l.stream
	if s.dev.index != k.dev.index {
		return fmt.Errorf("cuda: kernel %s of %v launched on a stream of %v: load the module there too", k.name, k.dev, s.dev)
	}
	if err := s.takes(""); err != nil {
		return err
	}
	return launch(s, k.h, l.grid.orOne(), l.block.orOne(), l.shared, l.packed)
}

// pack adds a number of fixed size, aligned to that size.
func (l *launching) pack(v any) {
	for len(l.packed)%binary.Size(v) != 0 {
		l.packed = append(l.packed, 0)
	}
	l.packed, _ = binary.Append(l.packed, binary.LittleEndian, v) // as GPUs are
}

// numbers are the types of parameters in PTX that numbers can be converted to.
var numbers = map[string]reflect.Type{
	"u8": reflect.TypeFor[uint8](), "u16": reflect.TypeFor[uint16](), "u32": reflect.TypeFor[uint32](), "u64": reflect.TypeFor[uint64](),
	"s8": reflect.TypeFor[int8](), "s16": reflect.TypeFor[int16](), "s32": reflect.TypeFor[int32](), "s64": reflect.TypeFor[int64](),
	"f32": reflect.TypeFor[float32](), "f64": reflect.TypeFor[float64](),
}

// number converts v to the type of a parameter in PTX; "" is the number's own. A .b32 takes signed,
// unsigned and floating-point numbers.
func number(v any, param string) (any, error) {
	x := reflect.ValueOf(v)
	if x.Kind() == reflect.Bool {
		x = reflect.ValueOf(map[bool]uint8{true: 1}[x.Bool()])
	}
	kind := ""
	switch {
	case x.CanFloat():
		kind = "f"
	case x.CanUint() || x.CanInt() && x.Int() >= 0:
		kind = "u"
	case x.CanInt():
		kind = "s"
	default:
		return nil, fmt.Errorf("%T is no array and no number", v)
	}
	name := param
	if name == "" {
		name = fmt.Sprint("b", x.Type().Bits())
	}
	if name[0] == 'b' {
		name = kind + name[1:]
	}
	to := numbers[name]
	if to == nil || kind == "f" && name[0] != 'f' {
		return nil, fmt.Errorf("%T for a parameter of type .%s", v, param)
	}
	y := x.Convert(to)
	negative := func(v reflect.Value) bool { return v.CanInt() && v.Int() < 0 }
	if name[0] != 'f' && (y.Convert(x.Type()).Interface() != x.Interface() || negative(x) != negative(y)) {
		return nil, fmt.Errorf("%v does not fit a .%s", v, param)
	}
	return y.Interface(), nil
}

var (
	ptxEntry = regexp.MustCompile(`\.entry\s+([\w$]+)\s*\(([^)]*)\)`)
	ptxParam = regexp.MustCompile(`\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s+)?(?:\.\w+\s+)*(?:\.align\s+\d+\s+)?[\w$]+(\[)?`)
	ptxNote  = regexp.MustCompile(`//[^\n]*`)
)

// parametersOf returns the types of the parameters of each kernel in PTX text, as "u64" or "f32";
// none for other images.
func parametersOf(image string) map[string][]string {
	all := map[string][]string{}
	for _, entry := range ptxEntry.FindAllStringSubmatch(ptxNote.ReplaceAllString(image, ""), -1) {
		params := []string{}
		for _, p := range ptxParam.FindAllStringSubmatch(entry[2], -1) {
			if p[2] != "" {
				p[1] += "[]" // a structure
			}
			params = append(params, p[1])
		}
		all[entry[1]] = params
	}
	return all
}
