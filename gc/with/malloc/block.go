//go:build linux

package malloc

// #include <stdlib.h>
import "C"

import "unsafe"

// malloc and free are for the tests of this package, whose files may not use cgo.
func malloc(size int) unsafe.Pointer { return C.malloc(C.size_t(size)) }

func free(p unsafe.Pointer) { C.free(p) }
