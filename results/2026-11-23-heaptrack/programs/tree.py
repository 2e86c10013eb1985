import random
random.seed(1)
class Node:
    __slots__ = ("key", "kids", "text")
    def __init__(self, key):
        self.key, self.kids, self.text = key, [], "n%d" % key * 3
def tree(depth, width):
    n = Node(random.getrandbits(40))
    if depth:
        n.kids = [tree(depth - 1, width) for _ in range(width)]
    return n
kept = []
for step in range(24):
    kept.append(tree(5, 4))
    if len(kept) > 6:
        kept.pop(random.randrange(len(kept)))
    s = sorted(str(k.key) for k in kept)
print(len(kept))
