package main

// A node is a piece of ballast: the Go collector must follow its pointers.
type node struct{ next [8]*node }

// newBallast makes a Go heap of about that many bytes that is all pointers, to
// stand for the rest of a program. Its pointers lead far, as those of old heaps do.
func newBallast(bytes int64) [][]node {
	const chunk = 1 << 13
	var all [][]node
	for n := bytes / 64; n > 0; n -= chunk {
		nodes := make([]node, min(n, chunk))
		for i := range nodes {
			for j := range nodes[i].next {
				from := nodes
				if len(all) > 0 {
					from = all[(i*8+j)*7919%len(all)]
				}
				nodes[i].next[j] = &from[(i*31+j*101)%len(from)]
			}
		}
		all = append(all, nodes)
	}
	return all
}
