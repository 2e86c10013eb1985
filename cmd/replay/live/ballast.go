package live

// A ballast is a Go heap of pointers, which costs the collector time.
type ballast struct{ trees []*node }

// A node takes 48 bytes, like the small structs of an app.
type node struct {
	left, right *node
	_           [4]uint64
}

const nodeBytes = 48

// treeNodes is the size of a subtree that fits in a few pages.
const treeNodes = 1<<12 - 1

// newBallast returns about bytes of reachable nodes.
func newBallast(bytes int64) *ballast {
	b := new(ballast)
	for n := bytes / nodeBytes; n > 0; n -= treeNodes {
		b.trees = append(b.trees, newTree(int(min(n, treeNodes))))
	}
	return b
}

func newTree(n int) *node {
	if n == 0 {
		return nil
	}
	left := (n - 1) / 2
	return &node{left: newTree(left), right: newTree(n - 1 - left)}
}
