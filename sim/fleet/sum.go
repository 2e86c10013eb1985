package fleet

import (
	"fmt"
	"math/big"
	"time"
)

// A Sum adds up durations of any number of runs exactly. The zero value is 0. Its JSON form
// is a number of nanoseconds.
type Sum struct{ ns big.Int }

// SumOf returns the sum of one duration.
func SumOf(d time.Duration) (s Sum) {
	s.ns.SetInt64(int64(d))
	return s
}

// Add adds t to s.
func (s *Sum) Add(t Sum) { s.ns.Add(&s.ns, &t.ns) }

// Seconds returns the sum in seconds.
func (s *Sum) Seconds() float64 {
	ns, _ := new(big.Float).SetInt(&s.ns).Float64()
	return ns / 1e9
}

// MarshalJSON writes the number.
func (s Sum) MarshalJSON() ([]byte, error) { return []byte(s.ns.String()), nil }

// UnmarshalJSON reads a whole number.
func (s *Sum) UnmarshalJSON(text []byte) error {
	if _, ok := s.ns.SetString(string(text), 10); !ok {
		return fmt.Errorf("fleet: %s is no whole number", text)
	}
	return nil
}
