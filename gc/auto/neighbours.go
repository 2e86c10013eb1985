package auto

import "github.com/eagergc/eagergc/pressure"

// Processes in one container find each other by what it holds: nothing is said between
// them. What others hold is not there for this process, so it is no part of its limit;
// and as the container fills up, the price of memory rises for all alike. At one price
// every process keeps the headroom sqrt(rate of growth x cost of a cycle / price): the
// square-root rule across processes (MemBalancer, OOPSLA 2022).

// others returns the bytes of a container of so many bytes that neither this process
// holds nor anybody can have at once.
func (w *watcher) others(limit int64) int64 {
	free, err := w.host.free()
	if err != nil {
		return 0
	}
	own, err := w.host.resident()
	if err != nil {
		return 0
	}
	return max(0, limit-free-own.Anonymous)
}

// neighbourLeast is the share of the container that others hold at least if they are
// neighbours, and no shell or agent beside the process.
const neighbourLeast = 0.05

// crowd is how full a container is that is shared; 0 if it is not.
func crowd(limit, others, own int64) float64 {
	if limit <= 0 || float64(others) < neighbourLeast*float64(limit) {
		return 0
	}
	return float64(others+own) / float64(limit)
}

func (system) free() (int64, error) {
	info, err := pressure.HostMemory()
	return info.Free, err
}
