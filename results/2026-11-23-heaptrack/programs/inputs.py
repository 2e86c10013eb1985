"""Writes words.txt and big.xml, always the same."""
import random

random.seed(2)
with open("big.xml", "w") as f:
    f.write("<list>")
    for i in range(12000):
        f.write('<item id="%d" kind="k%d"><name>thing %d</name><price cur="EUR">%d</price><note>%s</note></item>' % (i, i % 7, i, random.randrange(9999), "x" * random.randrange(80)))
    f.write("</list>")
with open("words.txt", "w") as f:
    for i in range(12000):
        f.write(" ".join("w%d" % int(random.paretovariate(0.6) % 50000) for _ in range(10)) + "\n")
