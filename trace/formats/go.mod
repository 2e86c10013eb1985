module github.com/eagergc/eagergc/trace/formats

go 1.26.0

require (
	github.com/eagergc/eagergc v0.1.0
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe
	github.com/klauspost/compress v1.20.3
	github.com/therootcompany/xz v1.0.1
	pgregory.net/rapid v1.3.0
)
