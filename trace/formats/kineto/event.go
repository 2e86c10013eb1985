package kineto

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A class says what kind of event it is.
type class uint8

const (
	classOther class = iota
	classMemory
	classOOM
	classSync
	classMark
	classLaunch // a call of the runtime or the driver
	classJob    // work of a device
)

// byName and byCategory tell the class of an event. Its name goes first; the category counts
// only for events with a duration.
var (
	byName = map[string]class{
		"[memory]": classMemory, "[OutOfMemory]": classOOM,
		"cudaStreamSynchronize": classSync, "cudaDeviceSynchronize": classSync, "cudaEventSynchronize": classSync,
		"hipStreamSynchronize": classSync, "hipDeviceSynchronize": classSync, "hipEventSynchronize": classSync,
	}
	byCategory = map[string]class{
		"user_annotation": classMark,
		"cuda_runtime":    classLaunch, "cuda_driver": classLaunch, "hip_runtime": classLaunch, "hip_driver": classLaunch,
		"kernel": classJob, "gpu_memcpy": classJob, "gpu_memset": classJob,
	}
)

// copies has the calls that copy and return when the copy is done. The others do so if the memory
// of the host is pageable ("API synchronization behavior" in the manual of the CUDA runtime).
var copies = map[string]bool{"cudaMemcpy": true, "hipMemcpy": true, "hipMemcpyWithStream": true}

// An event holds the fields of one element of traceEvents that matter. A field of another
// type than is expected stays empty.
type event struct {
	Name string `json:"name"`
	Ph   string `json:"ph"`
	Cat  string `json:"cat"`
	TS   number `json:"ts"` // us
	Dur  number `json:"dur"`
	TID  number `json:"tid"`
	Args struct {
		Bytes       number
		Addr        number
		Device      number `json:"Device Id"`
		DeviceType  number `json:"Device Type"`
		Allocated   number `json:"Total Allocated"`
		Reserved    number `json:"Total Reserved"`
		Correlation number `json:"correlation"`
	} `json:"args"`
}

func (e *event) class() class {
	if c := byName[e.Name]; c != classOther || e.Ph != "X" {
		return c
	}
	return byCategory[e.Cat]
}

// A number is the text of a JSON number; empty stands for any other value.
type number string

// UnmarshalJSON implements [json.Unmarshaler].
func (n *number) UnmarshalJSON(b []byte) error {
	if b[0] == '-' || '0' <= b[0] && b[0] <= '9' {
		*n = number(b)
	}
	return nil
}

// integer returns an argument, which must be an integer in [low, high].
func (n number) integer(name string, low, high int64) (int64, error) {
	v, err := strconv.ParseInt(string(n), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is beyond 64 bits", name)
	case err != nil:
		return 0, fmt.Errorf("no integer %q in args", name)
	case v < low || v > high:
		return 0, fmt.Errorf("%s %d is not in [%d, %d]", name, v, low, high)
	}
	return v, nil
}

// address is an integer that may use all 64 bits.
func (n number) address() (uint64, error) {
	if v, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return uint64(v), nil
	}
	v, err := strconv.ParseUint(string(n), 10, 64)
	if err != nil {
		err = errors.New(`no integer "Addr" in args`)
	}
	return v, err
}

// total returns a running total, or -1 if the profile has none.
func (n number) total() int64 {
	if v, err := n.integer("", 0, maxSize); err == nil {
		return v
	}
	return -1
}

// span returns the event's time and, if it must have one, its duration.
func (e *event) span(needDur bool) (ts, dur int64, err error) {
	ts, err = nanoseconds(string(e.TS))
	switch {
	case e.TS == "":
		return 0, 0, fmt.Errorf("%s has no ts", e.Name)
	case err != nil:
		return 0, 0, fmt.Errorf("ts of %s is out of range", e.Name)
	case e.Dur == "" && needDur:
		return 0, 0, fmt.Errorf("%s has no dur", e.Name)
	case e.Dur == "":
		return ts, 0, nil
	}
	if dur, err = nanoseconds(string(e.Dur)); err != nil || dur < 0 {
		return 0, 0, fmt.Errorf("dur of %s is negative or out of range", e.Name)
	}
	return ts, dur, nil
}

const maxTime = math.MaxInt64 / 4 // ns

var errRange = errors.New("number out of range")

// nanoseconds turns a JSON number of microseconds into nanoseconds, at most maxTime. Time since
// 1970 is too long for a float64, which would be wrong by up to 0.5 us: so the whole microseconds
// are read as an integer. Parts of a nanosecond are rounded, halves away from zero.
func nanoseconds(us string) (int64, error) {
	about, err := strconv.ParseFloat(us, 64)
	if err != nil || math.Abs(about) > maxTime/1000 {
		return 0, errRange
	}
	digits, fraction, _ := strings.Cut(us, ".")
	whole, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || strings.ContainsAny(fraction, "eE") {
		return int64(math.Round(about * 1000)), nil
	}
	part, _ := strconv.ParseFloat("0."+fraction, 64)
	return whole*1000 + int64(math.Round(math.Copysign(part, about)*1000)), nil
}
