package kineto

import (
	"fmt"
	"math"
	"strconv"
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

func classOf(name []byte) class {
	switch string(name) {
	case "[memory]":
		return classMemory
	case "[OutOfMemory]":
		return classOOM
	case "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize",
		"hipStreamSynchronize", "hipDeviceSynchronize", "hipEventSynchronize":
		return classSync
	}
	return classOther
}

func classOfCat(cat []byte) class {
	switch string(cat) {
	case "user_annotation":
		return classMark
	case "cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver":
		return classLaunch
	case "kernel", "gpu_memcpy", "gpu_memset":
		return classJob
	}
	return classOther
}

// An event holds the fields of one element of traceEvents that matter.
type event struct {
	name     []byte // reused by the next event
	class    class
	complete bool  // ph is X
	cat      class // by its category alone
	ts, dur  time
	tid      uint32
	args     [argCount]arg
}

// time is a number of microseconds, in ns.
type time struct {
	ns  int64
	ok  bool
	err error // the number does not fit
}

// An arg is an integer argument of an event. An address may use all 64 bits.
type arg struct {
	n       int64
	ok, big bool // ok: an integer; big: an integer outside int64
}

const (
	argBytes = iota
	argAddr
	argDevice
	argDeviceType
	argAllocated
	argReserved
	argCorrelation
	argCount
)

var argNames = [argCount]string{"Bytes", "Addr", "Device Id", "Device Type", "Total Allocated", "Total Reserved", "correlation"}

// event reads one event into e. Its opening brace has been read.
func (s *scanner) event(e *event) error {
	*e = event{name: e.name[:0]}
	for first := true; ; first = false {
		key, ok, err := s.key(first)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := s.field(e, key); err != nil {
			return err
		}
	}
	if e.class == classOther && e.complete {
		e.class = e.cat
	}
	return nil
}

func (s *scanner) field(e *event, key []byte) (err error) {
	var text []byte
	switch string(key) {
	case "name":
		if text, err = s.textOr(); err == nil {
			e.name = append(e.name[:0], text...)
			e.class = classOf(text)
		}
	case "ph":
		if text, err = s.textOr(); err == nil {
			e.complete = string(text) == "X"
		}
	case "cat":
		if text, err = s.textOr(); err == nil {
			e.cat = classOfCat(text)
		}
	case "ts":
		e.ts, err = s.time()
	case "dur":
		e.dur, err = s.time()
	case "tid":
		var tid arg
		tid, err = s.integer()
		e.tid = uint32(tid.n)
	case "args":
		err = s.args(e)
	default:
		err = s.skip()
	}
	return err
}

// textOr reads a string; it skips any other value.
func (s *scanner) textOr() ([]byte, error) {
	if c, err := s.peek(); err != nil || c != '"' {
		if err == nil {
			err = s.skip()
		}
		return nil, err
	}
	return s.text()
}

// numberOr reads a number; it skips any other value.
func (s *scanner) numberOr() ([]byte, error) {
	c, err := s.peek()
	if err != nil {
		return nil, err
	}
	if c == '-' || '0' <= c && c <= '9' {
		return s.number()
	}
	return nil, s.skip()
}

func (s *scanner) time() (time, error) {
	b, err := s.numberOr()
	if err != nil || b == nil {
		return time{}, err
	}
	ns, err := nanoseconds(b)
	return time{ns: ns, ok: true, err: err}, nil
}

func (s *scanner) integer() (arg, error) {
	b, err := s.numberOr()
	if err != nil || b == nil {
		return arg{}, err
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err == nil {
		return arg{n: n, ok: true}, nil
	}
	if u, err := strconv.ParseUint(string(b), 10, 64); err == nil {
		return arg{n: int64(u), big: true}, nil
	}
	return arg{big: digits(b) == len(b)}, nil
}

func (s *scanner) args(e *event) error {
	if c, err := s.peek(); err != nil || c != '{' {
		if err == nil {
			err = s.skip()
		}
		return err
	}
	s.pos++
	for first := true; ; first = false {
		key, ok, err := s.key(first)
		if err != nil || !ok {
			return err
		}
		at := argOf(key)
		if at < 0 {
			err = s.skip()
		} else {
			e.args[at], err = s.integer()
		}
		if err != nil {
			return err
		}
	}
}

func argOf(key []byte) int {
	switch string(key) {
	case "Bytes":
		return argBytes
	case "Addr":
		return argAddr
	case "Device Id":
		return argDevice
	case "Device Type":
		return argDeviceType
	case "Total Allocated":
		return argAllocated
	case "Total Reserved":
		return argReserved
	case "correlation":
		return argCorrelation
	}
	return -1
}

// get returns an argument, which must be present and in [low, high].
func (e *event) get(at int, low, high int64) (int64, error) {
	a := e.args[at]
	switch {
	case a.big:
		return 0, fmt.Errorf("%s is beyond 64 bits", argNames[at])
	case !a.ok:
		return 0, fmt.Errorf("no integer %q in args", argNames[at])
	case a.n < low || a.n > high:
		return 0, fmt.Errorf("%s %d is not in [%d, %d]", argNames[at], a.n, low, high)
	}
	return a.n, nil
}

// span returns the event's time and, if it must have one, its duration.
func (e *event) span(needDur bool) (ts, dur int64, err error) {
	switch {
	case !e.ts.ok:
		return 0, 0, fmt.Errorf("%s has no ts", e.name)
	case e.ts.err != nil || e.ts.ns > maxTime || e.ts.ns < -maxTime:
		return 0, 0, fmt.Errorf("ts of %s is out of range", e.name)
	case needDur && !e.dur.ok:
		return 0, 0, fmt.Errorf("%s has no dur", e.name)
	case e.dur.err != nil || e.dur.ns < 0 || e.dur.ns > maxTime:
		return 0, 0, fmt.Errorf("dur of %s is negative or out of range", e.name)
	}
	return e.ts.ns, e.dur.ns, nil
}

const maxTime = math.MaxInt64 / 4 // ns
