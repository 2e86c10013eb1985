//go:build !linux || !(amd64 || arm64)

package gc

func processTrimmer() *trimmer { return new(trimmer) }
