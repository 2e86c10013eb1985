module github.com/eagergc/eagergc/pool/cuda

go 1.26.0

require (
	github.com/eagergc/eagergc v0.1.0
	gorgonia.org/cu v0.9.6
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
)
