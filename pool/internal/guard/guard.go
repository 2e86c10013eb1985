// Package guard calls code that is not the caller's, and turns its panics into
// errors.
package guard

import (
	"fmt"
	"runtime/debug"
)

// Value returns what f returns, or f's panic as an error.
func Value[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("pool: contained panic: %v\n%s", e, debug.Stack())
		}
	}()
	return f()
}

// Error returns what f returns, or f's panic as an error.
func Error(f func() error) error {
	_, err := Value(func() (struct{}, error) { return struct{}{}, f() })
	return err
}
