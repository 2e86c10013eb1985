module github.com/eagergc/eagergc/gc/with/govips

go 1.26.0

require (
	github.com/davidbyttow/govips/v2 v2.18.0
	github.com/eagergc/eagergc v0.1.0
)

require (
	golang.org/x/image v0.46.0 // indirect
	golang.org/x/net v0.59.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)
