package cuda

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/eagergc/eagergc/pool/array"
)

// Shared as an argument of [Launch] is the bytes of dynamic shared memory per block.
type Shared int

// Launch runs a kernel on s with these arguments: it queues the work and returns. A nil s is the
// default stream. Arguments are arrays, registered memory ([Registered]), numbers, bools, and
// [Shared]. The kernel gets the address of an array. Arrays are used as by [With]: the work comes
// after all work that used them before, and their memory stays until it is done.
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
	case interface{ address(*Stream) uintptr }:
		l.packed.Ptr(a.address(l.stream))
		defer runtime.KeepAlive(a)
	default:
		if err := l.packed.number(a, param); err != nil {
			return wrong(err)
		}
	}
	return l.from(i + 1)
}

// number adds a number as the type of a parameter in PTX; "" is the number's own.
func (a *Args) number(v any, param string) error {
	var i int64
	var f float64
	own := ""
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.Bool && r.Bool():
		i, own = 1, "u8"
	case r.Kind() == reflect.Bool:
		own = "u8"
	case r.CanInt():
		i = r.Int()
		f, own = float64(i), fmt.Sprint("s", r.Type().Bits())
	case r.CanUint():
		i = int64(r.Uint())
		f, own = float64(r.Uint()), fmt.Sprint("u", r.Type().Bits())
	case r.CanFloat():
		f, own = r.Float(), fmt.Sprint("f", r.Type().Bits())
	default:
		return fmt.Errorf("%T is no array and no number", v)
	}
	if param == "" {
		param = own
	}
	if own[0] == 'f' && param[0] == 'b' {
		param = "f" + param[1:]
	}
	bits, err := strconv.Atoi(param[1:])
	switch {
	case err != nil || bits > 64:
		return fmt.Errorf("a parameter of type .%s is not for Launch: use Kernel.Launch", param)
	case param == "f32":
		a.Float32(float32(f))
	case param == "f64":
		a.Uint64(math.Float64bits(f))
	case own[0] == 'f' || param[0] == 'f':
		return fmt.Errorf("%T, want a .%s", v, param)
	case !fits(i, own[0] == 's', param[0], bits):
		return fmt.Errorf("%v does not fit a .%s", v, param)
	default:
		for at := range a.next(bits / 8) {
			a.buf[a.n-bits/8+at] = byte(i >> (8 * at)) // GPUs are little-endian
		}
	}
	return nil
}

// fits reports whether an integer is a value with this number of bits. The kind is s (signed), u
// (unsigned) or b (either).
func fits(i int64, signed bool, kind byte, bits int) bool {
	least, most := int64(-1)<<(bits-1), uint64(1)<<bits-1
	switch kind {
	case 's':
		most >>= 1
	case 'u':
		least = 0
	}
	if signed && i < 0 {
		return i >= least
	}
	return uint64(i) <= most
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
