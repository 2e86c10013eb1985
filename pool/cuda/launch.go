package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/eagergc/eagergc/pool/array"
)

// Shared as an argument of [Launch] is the bytes of dynamic shared memory per block.
type Shared int

// Launch runs a kernel on s with these arguments: it queues the work and returns. A
// nil s is the default stream. Arguments are arrays, of which the kernel gets the
// address, registered memory ([Registered]), integers and floats, and [Shared]. Arrays
// are used as by [With]: the work comes after all that used them before, and their
// memory stays until it is done.
//
// Where the kernel comes from PTX text, numbers are converted to the declared types, so
// that 0.5 and n do for a .f32 and a .u32; Launch fails if one does not fit, an array
// is given for a number, or their count differs. A kernel of a cubin declares nothing:
// there numbers are taken as they are, an int as 64 bits.
func Launch(k *Kernel, s *Stream, grid, block Dim, args ...any) error {
	if k == nil {
		return errors.New("cuda: launch of no kernel")
	}
	if s == nil {
		s = k.dev.Default()
	}
	l := launching{kernel: k, stream: s, grid: grid, block: block}
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
	packed      Args
}

// from takes the arguments from i on, and launches. It holds the arrays meanwhile.
func (l *launching) from(i int) error {
	if i == len(l.args) {
		return l.kernel.Launch(l.stream, l.grid, l.block, l.shared, &l.packed)
	}
	if l.packed.n > len(l.packed.buf)-8 {
		return fmt.Errorf("cuda: kernel %s: more than %d bytes of arguments", l.kernel.name, len(l.packed.buf))
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
				l.packed.Ptr(at)
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
	case interface{ address() uintptr }:
		l.packed.Ptr(a.address())
	default:
		if err := l.packed.number(a, param); err != nil {
			return wrong(err)
		}
	}
	return l.from(i + 1)
}

// number adds a number as the type of a parameter in PTX; "" is the number's own.
func (a *Args) number(v any, param string) error {
	i, f, isFloat, own := int64(0), 0.0, false, "s64"
	switch v := v.(type) {
	case int:
		i = int64(v)
	case int32:
		i, own = int64(v), "s32"
	case uint32:
		i, own = int64(v), "u32"
	case int64:
		i = v
	case uint64:
		i, own = int64(v), "u64"
	case uintptr:
		i, own = int64(v), "u64"
	case float32:
		f, isFloat, own = float64(v), true, "f32"
	case float64:
		f, isFloat, own = v, true, "f64"
	default:
		return fmt.Errorf("%T is no array, no integer of 32 or 64 bits and no float", v)
	}
	if param == "" {
		param = own
	}
	if isFloat && param[0] == 'b' {
		param = "f" + param[1:]
	}
	if !isFloat && param[0] == 'f' {
		f = float64(i)
	}
	switch {
	case isFloat && param[0] != 'f':
		return fmt.Errorf("%T, want a .%s", v, param)
	case param == "f32":
		a.Float32(float32(f))
	case param == "f64":
		a.Uint64(math.Float64bits(f))
	case strings.HasSuffix(param, "64"):
		if i < 0 && own[0] == 's' && param[0] == 'u' {
			return fmt.Errorf("%d does not fit a .%s", i, param)
		}
		a.Uint64(uint64(i))
	case strings.HasSuffix(param, "32"):
		if low, high := int64(math.MinInt32), int64(math.MaxUint32); i < low || i > high || own == "u64" && i < 0 ||
			param[0] == 's' && i > math.MaxInt32 || param[0] == 'u' && i < 0 {
			return fmt.Errorf("%v does not fit a .%s", v, param)
		}
		a.Uint32(uint32(i))
	case strings.HasSuffix(param, "16"), strings.HasSuffix(param, "8"):
		bits := 16
		if strings.HasSuffix(param, "8") {
			bits = 8
		}
		if low, high := -int64(1)<<(bits-1), int64(1)<<bits-1; i < low || i > high {
			return fmt.Errorf("%v does not fit a .%s", v, param)
		}
		if bits == 8 {
			a.next(1)[0] = byte(i)
		} else {
			binary.NativeEndian.PutUint16(a.next(2), uint16(i))
		}
	default:
		return fmt.Errorf("a parameter of type .%s is not for Launch: use Kernel.Launch", param)
	}
	return nil
}

var (
	ptxEntry = regexp.MustCompile(`\.entry\s+([\w$]+)\s*\(([^)]*)\)`)
	ptxParam = regexp.MustCompile(`\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s+)?(?:\.\w+\s+)*(?:\.align\s+\d+\s+)?[\w$]+(\[)?`)
	ptxNote  = regexp.MustCompile(`//[^\n]*`)
)

// parametersOf returns the types of the parameters of each kernel in PTX text, as
// "u64" or "f32"; none for other images.
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
