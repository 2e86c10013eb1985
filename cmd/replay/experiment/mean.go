package experiment

import (
	"math"

	"github.com/montanaflynn/stats"
)

// GeometricMean returns NaN if xs is empty or has a number that is 0 or less.
func GeometricMean(xs []float64) float64 {
	mean, err := stats.GeometricMean(xs)
	if err != nil {
		return math.NaN()
	}
	return mean
}

// Mean is the geometric mean of a number of each outcome. It is NaN without outcomes, or if one
// has no result.
func Mean(outcomes []*Outcome, of func(*Outcome) float64) float64 {
	var xs []float64
	for _, o := range outcomes {
		if o.Err != nil {
			return math.NaN()
		}
		xs = append(xs, of(o))
	}
	return GeometricMean(xs)
}
