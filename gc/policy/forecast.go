package policy

import "math/bits"

// A forecast predicts how many bytes the program is about to allocate. It expects that a situation
// has the same sequel as the last time. A situation is the last tokens, and the number of grains
// that the program has grown since the last token. A token is a sync or a large request.
type forecast struct {
	tokens [longest]uint64
	count  int
	since  uint64 // grains since the last token
	here   keys   // keys of the present situation
	tables [len(contexts)][1024]situation
	ring   [1024]entry // the newest entries
	head   int64       // number of the next entry
	known  int64       // number of the first entry whose sequel is not known yet
}

// contexts are the numbers of tokens that tell situations apart. The longest known context counts.
var contexts = [...]int{2, 8, longest}

const longest = 24

// keys are hashes of a situation, one for each context.
type keys [len(contexts)]uint64

// A situation holds the sequel of a situation. Bytes below 0 are unknown.
type situation struct {
	key        uint64
	last, most int64 // bytes that followed the last time, and the most lately
	kept       int64 // bytes kept by a cycle that started there
}

const (
	mostFades = 16 // a smaller sequel lowers most by a 16th of the difference
	syncToken = 1
	mix       = 0x9e3779b97f4a7c15 // odd, as is mix2
	mix2      = 0xff51afd7ed558ccd
)

// An entry is a moment to remember: a token, or a grain of growth.
type entry struct {
	moment
	top  int64 // total, once the request is granted
	keys keys
}

func (f *forecast) at(s int64) *entry { return &f.ring[uint64(s)%uint64(len(f.ring))] }

// see remembers a point if it is a token or a grain of growth, and reports whether it did. The
// token of a request is its size to a factor of two, because some programs never repeat exact
// sizes.
func (f *forecast) see(now moment, at *Point, grain int64) bool {
	token := uint64(0)
	switch {
	case at.At == Sync:
		token = syncToken
	case at.Request >= grain:
		token = uint64(bits.Len64(uint64(at.Request)))*mix2 | 2
	case f.head > 0 && now.total-f.at(f.head-1).total < grain:
		return false
	}
	f.measure(now, float64(at.Cost)/(1+at.Slowdown))
	f.since++
	if token != 0 {
		f.since = 0
		f.tokens[f.count%longest] = token
		f.count++
	}
	h, context := uint64(0), 0
	for i := range longest {
		h = h*mix + f.tokens[(f.count+longest-1-i)%longest]
		if i+1 == contexts[context] {
			x := (h + f.since) * mix
			f.here[context] = (x ^ x>>29) * mix2
			context++
		}
	}
	*f.at(f.head) = entry{now, now.total + at.Request, f.here}
	f.head++
	return true
}

// measure learns the sequels that are known now. The sequel of an entry is the bytes allocated
// after it, without its own request. It ends with a cycle that starts at the entry after it. Beside
// that cycle the program gets as far as in g nanoseconds without one.
func (f *forecast) measure(now moment, g float64) {
	f.known = max(f.known, f.head-int64(len(f.ring)))
	for f.known+1 < f.head && float64(now.time-f.at(f.known+1).time) > g {
		e := f.at(f.known)
		followed := max(0, f.at(f.head-1).top-e.top)
		f.visit(&e.keys, func(x *situation) {
			x.last, x.most = followed, max(followed, x.most-(x.most-followed)/mostFades)
		})
		f.known++
	}
}

// visit calls note for the situation in each context. A new situation replaces an old one.
func (f *forecast) visit(k *keys, note func(*situation)) {
	for i, key := range k {
		x := &f.tables[i][key>>54]
		if x.key != key {
			*x = situation{key, -1, -1, -1}
		}
		note(x)
	}
}

// recall returns the present situation. Last and most are 0 if they are unknown. Kept counts only
// if more than the last two tokens are the same: these are alike at many places of a loop.
func (f *forecast) recall() (now situation) {
	now.kept = -1
	for i, key := range f.here {
		x := &f.tables[i][key>>54]
		if x.key == key && x.most >= 0 {
			now.last, now.most = x.last, x.most
		}
		if x.key == key && x.kept >= 0 && i > 0 {
			now.kept = x.kept
		}
	}
	return now
}
