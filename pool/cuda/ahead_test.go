package cuda

import (
	"errors"
	"slices"
	"testing"
)

// However the loop ends, what was started is freed once, and in order; errors stay
// with their batch; as many are under way as the depth says.
func TestAhead(t *testing.T) {
	bad := errors.New("one batch")
	for _, depth := range []int{0, 1, 3, 100} {
		for stop := range 12 {
			var started, freed, seen []int
			most := 0
			func() {
				defer func() { recover() }()
				source := func(yield func(int, error) bool) {
					for k := range 10 {
						started = append(started, k)
						most = max(most, len(started)-len(freed))
						var err error
						if k == 4 {
							err = bad
						}
						if !yield(k, err) {
							return
						}
					}
				}
				for k, err := range ahead(depth, func(k int) { freed = append(freed, k) }, source) {
					if (err == bad) != (k == 4) {
						t.Errorf("batch %d: %v", k, err)
					}
					if len(seen) == stop && stop%2 == 0 {
						panic("the loop's body")
					} else if len(seen) == stop {
						break
					}
					seen = append(seen, k)
				}
			}()
			if !slices.Equal(started, freed) || !slices.IsSorted(seen) || len(seen) != min(stop, 10) || most > max(depth, 1)+1 {
				t.Errorf("depth %d, stop %d: started %v, freed %v, seen %v, %d at a time", depth, stop, started, freed, seen, most)
			}
		}
	}
}
