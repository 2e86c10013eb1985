//go:build !cudasim

package cuda

import "testing"

// driverPiece is the memory that a driver takes at a time for its own pool, which counts against the limit of all pools of the device.
const driverPiece = 32 << 20

// What the simulated driver knows, and a real one does not tell.

func held() int { return 0 }

type testSchedule struct {
	name     string
	together int // programs that share pools
	set      func(testing.TB, uint64)
}

func schedules() []testSchedule {
	return []testSchedule{{"gpu", 500, func(testing.TB, uint64) {}}}
}
