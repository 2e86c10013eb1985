module github.com/eagergc/eagergc/trace/formats

go 1.26.0

require (
	github.com/eagergc/eagergc v0.1.0
	github.com/eagergc/eagergc/pool/cuda v0.1.0
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe
	github.com/klauspost/compress v1.20.3
	pgregory.net/rapid v1.3.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	gorgonia.org/cu v0.9.6 // indirect
)
