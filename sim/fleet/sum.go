package fleet

import (
	"fmt"
	"math/big"
	"math/bits"
)

// A Sum adds up numbers that are not negative, exactly: it has 128 bits, enough for
// bytes x nanoseconds of any fleet. The zero value is 0. Its JSON form is a number.
type Sum struct{ high, low uint64 }

// SumOf returns a Sum of one number. A negative one is a broken invariant.
func SumOf(n int64) Sum {
	if n < 0 {
		panic(fmt.Sprintf("fleet: %d in a sum of numbers that are not negative", n))
	}
	return Sum{0, uint64(n)}
}

// Product returns a x b, neither of them negative.
func Product(a, b int64) Sum {
	high, low := bits.Mul64(SumOf(a).low, SumOf(b).low)
	return Sum{high, low}
}

// Add adds t to s.
func (s *Sum) Add(t Sum) {
	low, carry := bits.Add64(s.low, t.low, 0)
	s.low, s.high = low, s.high+t.high+carry
}

// Float returns the nearest float64, for ratios and pictures.
func (s Sum) Float() float64 { return float64(s.high)*(1<<64) + float64(s.low) }

// String returns the number in decimal.
func (s Sum) String() string {
	n := new(big.Int).SetUint64(s.high)
	return n.Lsh(n, 64).Add(n, new(big.Int).SetUint64(s.low)).String()
}

// MarshalJSON writes the number.
func (s Sum) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON reads a whole number of at most 128 bits.
func (s *Sum) UnmarshalJSON(text []byte) error {
	n, ok := new(big.Int).SetString(string(text), 10)
	if !ok || n.Sign() < 0 || n.BitLen() > 128 {
		return fmt.Errorf("%s is no sum", text)
	}
	s.low = new(big.Int).And(n, new(big.Int).SetUint64(^uint64(0))).Uint64()
	s.high = n.Rsh(n, 64).Uint64()
	return nil
}
