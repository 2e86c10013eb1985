package gc

import "math/bits"

// A history is what a program did: its syncs, its large requests, and its growth
// in between. It finds the moments that were like the present one.
type history struct {
	ring [remembered]entry
	head int64 // number of the next entry; numbers begin at 1, entry s is ring[s % remembered]
	last int64 // newest token

	tokens [2][maxContext]uint64 // the last ones, by size and by power of two
	count  int
	hashes [orders]uint64      // of the last tokens
	index  [orders][1024]int64 // newest entry by hash
}

const (
	remembered = 4096
	orders     = 5
	maxContext = 32
	unknown    = -1
	looks      = 32 // entries looked at for a context
)

// contexts are the numbers of tokens in common by which a moment is found, best
// first. The first three compare requests by size, the others by the power of two
// above it, for programs whose sizes vary.
var contexts = [orders]int{maxContext, 8, 4, 8, 1}

// stream says which tokens a context compares: 0 is by size, 1 by power of two.
var stream = [orders]int{0, 0, 0, 1, 1}

// An entry is one moment worth remembering: a token, which is a sync or a
// request of at least a grain, or a grain of growth by smaller requests.
type entry struct {
	moment
	request   int64
	reachable int64          // bytes that a cycle started here keeps, or unknown
	token     uint64         // 0 for growth
	hashes    [orders]uint32 // of the tokens up to here
	back      [orders]int32  // how far back the entry before with the same hash may be; 0 = none
}

const (
	syncToken = 1
	mix       = 0x9e3779b97f4a7c15 // odd
)

// mixed is mix to the power of the contexts' lengths.
var mixed = [orders]uint64{power(contexts[0]), power(contexts[1]), power(contexts[2]), power(contexts[3]), power(contexts[4])}

func power(n int) uint64 {
	x := uint64(1)
	for range n {
		x *= mix
	}
	return x
}

func (h *history) at(s int64) *entry { return &h.ring[uint64(s)%remembered] }

// kept reports whether entry s is there.
func (h *history) kept(s int64) bool { return s > 0 && s > h.head-remembered && s < h.head }

// see remembers a point, if it is worth it.
func (h *history) see(now moment, at Point, grain int64) {
	if h.head == 0 {
		h.head = 1
	}
	token := uint64(0)
	switch {
	case at.At == Sync:
		token = syncToken
	case at.Request >= grain:
		token = sizeToken(at.Request)
	}
	if token == 0 && h.head > 1 && now.total-h.at(h.head-1).total < grain {
		return
	}
	e := h.at(h.head)
	*e = entry{moment: now, request: at.Request, reachable: unknown, token: token}
	if token != 0 {
		rough := token
		if token != syncToken {
			rough = sizeToken(int64(bits.Len64(uint64(at.Request))))
		}
		h.push([2]uint64{token, rough})
		h.link(e)
		h.last = h.head
	}
	h.head++
}

// sizeToken is the token of a request: even, so never that of a sync.
func sizeToken(size int64) uint64 { return uint64(size)*0xff51afd7ed558ccd<<1 | 2 }

// push adds a token, by size and by power of two, to the hashes, and takes the
// oldest one out.
func (h *history) push(token [2]uint64) {
	for k, n := range contexts {
		c := stream[k]
		oldest := h.tokens[c][(h.count+maxContext-n)%maxContext]
		h.hashes[k] = h.hashes[k]*mix + token[c] - oldest*mixed[k]
	}
	h.tokens[0][h.count%maxContext] = token[0]
	h.tokens[1][h.count%maxContext] = token[1]
	h.count++
}

// link puts the newest token into the index. It inherits what is known to have
// been reachable where the most tokens before were the same.
func (h *history) link(e *entry) {
	for k, x := range h.hashes {
		slot := &h.index[k][x>>54]
		e.hashes[k] = uint32(x >> 22)
		if h.kept(*slot) {
			e.back[k] = int32(h.head - *slot)
		}
		*slot = h.head
		if e.reachable == unknown && k < orders-1 {
			if s := h.before(h.head, k); s > 0 {
				e.reachable = h.at(s).reachable
			}
		}
	}
}

// before returns the newest entry before s with the same context, or 0.
func (h *history) before(s int64, k int) int64 {
	want := h.at(s).hashes[k]
	for range looks {
		back := int64(h.at(s).back[k])
		if s -= back; back == 0 || !h.kept(s) {
			return 0
		}
		if h.at(s).hashes[k] == want {
			return s
		}
	}
	return 0
}

// like appends the moments that are most like the present one: up to the room in
// all. The last resort are moments of the same kind, spread over the history.
func (h *history) like(all []int64) []int64 {
	if !h.kept(h.last) {
		return all
	}
	for k := range contexts {
		for s := h.before(h.last, k); s > 0 && len(all) < cap(all); s = h.before(s, k) {
			all = appendNew(all, s)
		}
	}
	oldest := max(1, h.head-remembered+1)
	sync := h.at(h.last).token == syncToken
	for j := int64(1); j <= int64(cap(all)) && len(all) < cap(all); j++ {
		s := h.head - 1 - j*(h.head-1-oldest)/int64(cap(all)+1)
		for n := s + looks; s < n && s < h.last && h.kept(s); s++ {
			if t := h.at(s).token; t != 0 && (t == syncToken) == sync {
				all = appendNew(all, s)
				break
			}
		}
	}
	return all
}

func appendNew(all []int64, s int64) []int64 {
	for _, t := range all {
		if t == s {
			return all
		}
	}
	return append(all, s)
}

// learn notes what was reachable at entry s.
func (h *history) learn(s, reachable int64) {
	if h.kept(s) {
		h.at(s).reachable = max(0, reachable)
	}
}
