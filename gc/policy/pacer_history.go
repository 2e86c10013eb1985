package policy

import "math/bits"

// A history is what a program did: its syncs, its large requests, and its
// growth in between. It follows the last time that the program did the same.
type history struct {
	ring  [remembered]entry
	head  int64 // number of the next entry; numbers begin at 1, entry s is ring[s % remembered]
	match int64 // entry at which the program was as it is now; 0 if there is none
	run   int   // tokens for which the match has held
	jumps int   // times that it did not follow

	tokens [maxContext]uint64 // the last ones
	count  int
	hashes [orders]uint64 // of the last tokens
	index  [orders]index  // newest entry
	known  index          // the same of order alike, of those for which it is known what followed

	matched  int64 // match at the newest token
	measured int64 // newest entry for which it is known what followed

	lately int64 // see pace

	knownAt, newestKnown int64 // newest entry at which it is known what is reachable, and that
}

const (
	remembered = 4096
	orders     = 3
	maxContext = 32
	alike      = 1 // the order of what counts as being as it is now
	unknown    = -1
)

// contexts are the numbers of tokens in common by which a match is found,
// best first: the first is beyond doubt.
var contexts = [orders]int{maxContext, 6, 2}

// An entry is one moment worth remembering: a token, which is a sync or a
// request of at least a grain, or a grain of growth by smaller requests.
type entry struct {
	moment
	request   int64
	reachable int64  // bytes that a cycle started here keeps; unknown
	followed  int64  // bytes: see measure
	like      int64  // the one before in known
	token     uint64 // 0 for growth
	hash      uint64 // of the last tokens, in order alike; of a token
}

// An index is where entries are found by the hash of their last tokens.
type index [1024]struct {
	hash  uint64
	entry int64
}

func (x *index) put(hash uint64, entry int64) {
	at := &x[hash>>54]
	at.hash, at.entry = hash, entry
}

// top is the total once the request is granted.
func (e *entry) top() int64 { return e.total + e.request }

// beside is the time by which cycles are measured: see [beside].
func (e *entry) beside(slow float64) float64 {
	return beside(float64(e.time), float64(e.waited), slow)
}

const (
	syncToken = 1
	mix       = 0x9e3779b97f4a7c15 // odd
)

// mixed is mix to the power of the contexts' lengths.
var mixed = [orders]uint64{power(contexts[0]), power(contexts[1]), power(contexts[2])}

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

// see remembers a point, if it is worth it. A request's token is its size to a factor of two:
// no two steps of some programs have the same sizes.
func (h *history) see(now moment, at *Point, grain int64) (remembers bool) {
	if h.head == 0 {
		h.head = 1
	}
	token := uint64(0)
	switch {
	case at.At == Sync:
		token = syncToken
	case at.Request >= grain:
		token = uint64(bits.Len64(uint64(at.Request)))*0xff51afd7ed558ccd | 2
	}
	if token == 0 && h.head > 1 && now.total-h.at(h.head-1).total < grain {
		return false
	}
	h.measure(now, float64(at.Cost), at.Slowdown)
	e := h.at(h.head)
	e.moment, e.request, e.reachable, e.like, e.token = now, at.Request, unknown, 0, token // its hash is that of a token
	if token == 0 {
		h.creep(now)
	} else {
		h.push(token)
		e.hash = h.hashes[alike]
		h.follow(e)
		for k, x := range h.hashes {
			h.index[k].put(x, h.head)
		}
	}
	if h.match > 0 {
		e.reachable = h.at(h.match).reachable // until a cycle measures it here
		h.know(h.head, e.reachable)
	}
	h.head++
	if !h.kept(h.match) {
		h.match = 0
	}
	return true
}

// push adds a token to the hashes, and takes the oldest one out.
func (h *history) push(token uint64) {
	for k, n := range contexts {
		oldest := h.tokens[(h.count+maxContext-n)%maxContext]
		h.hashes[k] = h.hashes[k]*mix + token - oldest*mixed[k]
	}
	h.tokens[h.count%maxContext] = token
	h.count++
}

// creep moves the match along growth between tokens.
func (h *history) creep(now moment) {
	s := h.match + 1
	if h.match == 0 || !h.kept(s) {
		return
	}
	next := h.at(s)
	if next.token == 0 && next.total-h.at(h.match).total <= now.total-h.at(h.head-1).total {
		h.match = s
	}
}

// follow moves the match to the token e, or finds another match.
func (h *history) follow(e *entry) {
	if s := h.nextToken(); s > 0 && h.at(s).token == e.token {
		h.match = s
		h.run++
	} else {
		h.match, h.run = 0, 0
		h.jumps++
	}
	for k, n := range contexts {
		if h.run >= n {
			break
		}
		if s := h.find(&h.index[k], h.hashes[k]); s > 0 {
			if s != h.match {
				h.jumps++
			}
			h.match, h.run = s, n
			break
		}
	}
	h.matched = h.match
}

// find returns the entry in an index that ends in the same tokens; 0 if there is none.
func (h *history) find(x *index, hash uint64) int64 {
	at := &x[hash>>54]
	if at.hash != hash || !h.kept(at.entry) {
		return 0
	}
	return at.entry
}

// nextToken returns the first token after the match; 0 if there is none.
func (h *history) nextToken() int64 {
	if h.match == 0 {
		return 0
	}
	for s := h.match + 1; h.kept(s); s++ {
		if h.at(s).token != 0 {
			return s
		}
	}
	return 0
}

// know keeps what is known to be reachable at the newest entry.
func (h *history) know(s, reachable int64) {
	if reachable != unknown && s >= h.knownAt {
		h.knownAt, h.newestKnown = s, reachable
	}
}

// learn notes what was reachable at entry s.
func (h *history) learn(s, reachable int64) {
	if h.kept(s) {
		h.at(s).reachable = reachable
		h.know(s, reachable)
	}
}

// reachable returns what a cycle that starts now is known to keep: what was reachable at the
// newest entry for which that is known; unknown without a match.
func (h *history) reachable() int64 {
	if h.match == 0 || h.knownAt == 0 {
		return unknown
	}
	return h.newestKnown
}

// pace returns for how long a byte lasted lately, in ns: over about so many bytes.
func (h *history) pace(bytes int64) float64 {
	now := h.at(h.head - 1)
	h.lately = max(h.lately, h.head-remembered+1, 1)
	for h.lately < h.head-1 && now.total-h.at(h.lately+1).total >= bytes {
		h.lately++
	}
	then := h.at(h.lately)
	return float64(now.time-then.time) / float64(max(1, now.total-then.total))
}

// knows reports whether a cycle that starts at this very place is known to free less than so many of the live bytes.
func (h *history) knows(live int64, least float64) bool {
	kept := h.at(h.head - 1).reachable
	return kept != unknown && float64(live-kept) < least
}
