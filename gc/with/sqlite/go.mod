module github.com/eagergc/eagergc/gc/with/sqlite

go 1.26.0

require (
	github.com/eagergc/eagergc v0.1.0
	github.com/mattn/go-sqlite3 v1.14.53
)

require golang.org/x/sys v0.48.0 // indirect
