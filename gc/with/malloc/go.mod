module github.com/eagergc/eagergc/gc/with/malloc

go 1.26.0

require github.com/eagergc/eagergc v0.1.0

require golang.org/x/sys v0.48.0
