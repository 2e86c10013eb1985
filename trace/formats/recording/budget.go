package recording

import (
	"errors"
	"fmt"
	"io"
)

const (
	freeMemory  = 16 << 20 // bytes that the smallest input may make its reader hold
	memoryRatio = 30       // bytes that each byte of the input adds; real recordings need 3 to 12
)

// ErrTooLarge reports an input that needs more memory than its [Budget] allows.
var ErrTooLarge = errors.New("needs more memory than its size allows")

// A Budget limits the memory that a reader uses for an input of unknown origin. The limit is 16 MiB
// and 30 times the bytes of the packed input. A nil Budget has no limit. It is for one goroutine at a
// time.
type Budget struct {
	Memory int64 // bytes that may be held in any case; 16 MiB if it is less

	read, held, most int64 // most is the most that was held at any time
}

// BudgetOf returns the budget of a reader that embeds one, as those of package
// trace/formats do, or nil.
func BudgetOf(r io.Reader) *Budget {
	if r, ok := r.(interface{ own() *Budget }); ok {
		return r.own()
	}
	return nil
}

func (b *Budget) own() *Budget { return b }

// Arrived counts n more bytes of the input.
func (b *Budget) Arrived(n int) { b.read += int64(n) }

// Hold counts bytes that the reader holds from now on, or with a minus no longer. [Budget.Err]
// says whether they are too many; a reader need not ask after each call.
func (b *Budget) Hold(bytes int64) {
	if b != nil {
		b.held += bytes
		b.most = max(b.most, b.held)
	}
}

// Err returns an [ErrTooLarge] if the reader held more, at any moment, than the bytes that it has read
// allow.
func (b *Budget) Err() error {
	if b != nil && b.most > max(freeMemory+memoryRatio*b.read, b.Memory) {
		return fmt.Errorf("%w: %d bytes so far, after %d bytes of the file (--max-memory allows more)", ErrTooLarge, b.most, b.read)
	}
	return nil
}
