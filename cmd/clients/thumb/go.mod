module github.com/eagergc/eagergc/cmd/clients/thumb

go 1.26.0

replace (
	github.com/eagergc/eagergc => ../../..
	github.com/eagergc/eagergc/cmd/clients => ..
)

require (
	github.com/davidbyttow/govips/v2 v2.18.0
	github.com/eagergc/eagergc v0.0.0
	github.com/eagergc/eagergc/cmd/clients v0.0.0
)
