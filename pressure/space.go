package pressure

import (
	"fmt"
	"strconv"
	"strings"
)

// A Space names one memory that is budgeted on its own. The zero value is [Host]. Its numbers are
// part of the trace format and never change.
type Space uint8

const (
	Host    Space = iota // pageable host memory
	Pinned               // page-locked host memory
	Managed              // memory that the driver migrates between host and device
	device0              // device n is device0 + n
)

// MaxDevices is the number of devices a Space can name.
const MaxDevices = 256 - int(device0)

// Device returns the space of device n, counted from 0. It panics if n is negative or not below
// [MaxDevices].
func Device(n int) Space {
	if n < 0 || n >= MaxDevices {
		panic(fmt.Sprintf("pressure: device %d out of range [0, %d)", n, MaxDevices))
	}
	return device0 + Space(n)
}

// Device returns the number of the device that s names, or false if s is memory of the host.
func (s Space) Device() (n int, ok bool) {
	return int(s) - int(device0), s >= device0
}

// String returns host, pinned, managed, or device0, device1, ...
func (s Space) String() string {
	switch s {
	case Host:
		return "host"
	case Pinned:
		return "pinned"
	case Managed:
		return "managed"
	}
	return "device" + strconv.Itoa(int(s-device0))
}

// ParseSpace is the inverse of [Space.String].
func ParseSpace(text string) (Space, error) {
	for _, s := range []Space{Host, Pinned, Managed} {
		if text == s.String() {
			return s, nil
		}
	}
	if digits, ok := strings.CutPrefix(text, "device"); ok {
		if n, _ := strconv.Atoi(digits); n >= 0 && n < MaxDevices && strconv.Itoa(n) == digits {
			return Device(n), nil
		}
	}
	return 0, fmt.Errorf("pressure: unknown space %q (want host, pinned, managed or device0 ... device%d)", text, MaxDevices-1)
}

// A Sample is one reading of a space. All fields but Space are bytes.
type Sample struct {
	Space    Space
	Live     int64 // handed out and not yet given back; garbage counts until it is freed
	Reserved int64 // taken from the upstream; at least Live
	Limit    int64 // the budget; 0 = none known
}

// Pressure returns live / limit, or 0 when no limit is known.
func (s Sample) Pressure() float64 {
	if s.Limit <= 0 {
		return 0
	}
	return float64(s.Live) / float64(s.Limit)
}

// Headroom returns limit - live, which is negative above the limit. It means nothing when no limit
// is known.
func (s Sample) Headroom() int64 { return s.Limit - s.Live }
