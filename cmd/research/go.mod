module github.com/eagergc/eagergc/cmd/research

go 1.26.0

require (
	github.com/eagergc/eagergc v0.1.0
	github.com/eagergc/eagergc/cmd/replay v0.1.0
	github.com/eagergc/eagergc/pool/cuda v0.1.0
	github.com/eagergc/eagergc/trace/formats v0.1.0
	github.com/montanaflynn/stats v0.14.0
	github.com/spf13/cobra v1.10.2
	golang.org/x/sync v0.24.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	gorgonia.org/cu v0.9.6 // indirect
)
