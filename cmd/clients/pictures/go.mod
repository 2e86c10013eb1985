module github.com/eagergc/eagergc/cmd/clients/pictures

go 1.26.0

require (
	github.com/eagergc/eagergc v0.1.0
	github.com/eagergc/eagergc/cmd/clients v0.1.0
	gopkg.in/gographics/imagick.v2 v2.7.1
)
