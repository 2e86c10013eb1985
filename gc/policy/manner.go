package policy

import "time"

// A manner finds out whether early starts pay in a program that cycles slow down. If the program
// loses almost as much beside a cycle as during one, an early start wins nothing, and each cycle
// frees less. A prediction would also need the after-effects of cycles: sweeping, and memory that
// other code gives back. So early and late starts are tried in turn, for some cycles each. The
// time per byte decides. The zero value starts early.
type manner struct {
	late  bool // at present no cycle starts before headroom ends
	best  bool // the value of late that costs less, as far as is known
	begun bool
	since mannerMark // start of the present try
	taken int        // cycles in the present try
	cost  [2]float64 // ns per byte, by late; 0 = not tried
	left  int        // tries of best until the other is tried again
	every int        // number of tries of best between two tries of the other
}

// A mannerMark is a position of the program, with pauses and waits included.
type mannerMark struct {
	at    time.Duration
	total int64 // bytes that would be live had no cycle freed any
}

const (
	mannerSlow   = 1    // slowdown above which late starts are tried
	mannerCycles = 6    // cycles in a try
	mannerLeast  = 2    // cycles after which a try of the manner that seems worse may end ...
	mannerClear  = 1.05 // ... because a byte costs so many times as much
	mannerFirst  = 4    // tries of best before the other is tried again, at first
	mannerMost   = 32
	keepManner   = 0.5 // weight of the old cost of a byte
)

// choose reports whether cycles start late from now on.
func (m *manner) choose(slow float64, now mannerMark) bool {
	if slow < mannerSlow && m.cost[1] == 0 {
		m.begun, m.late = false, false
		return false
	}
	if !m.begun {
		m.begun, m.since, m.taken = true, now, 0
	}
	grown := now.total - m.since.total
	if m.taken < mannerLeast || grown <= 0 {
		return m.late
	}
	cost := float64(now.at-m.since.at) / float64(grown)
	if m.taken >= mannerCycles || m.late != m.best && cost > mannerClear*m.cost[index(m.best)] {
		m.learn(cost)
		m.since, m.taken = now, 0
	}
	return m.late
}

// learn notes the time per byte in the try that ends, and begins the next one.
func (m *manner) learn(cost float64) {
	mine, other := &m.cost[index(m.late)], m.cost[index(!m.late)]
	if *mine > 0 {
		cost = keepManner**mine + (1-keepManner)*cost
	}
	*mine = cost
	switch trial := m.late != m.best; {
	case trial && cost < other:
		m.best, m.every, m.left = m.late, mannerFirst, mannerFirst
	case trial:
		m.every = min(max(mannerFirst, 2*m.every), mannerMost)
		m.late, m.left = m.best, m.every
	case m.left > 1:
		m.left--
	default:
		m.late = !m.best
	}
}

func index(late bool) int {
	if late {
		return 1
	}
	return 0
}
