// Package gc has the function that the analyzer knows by its path.
package gc

import "unsafe"

type Collector struct{ Native unsafe.Pointer }

func Own[T, A any](_ *Collector, owner *T, bytes int64, release func(A), arg A) {}
