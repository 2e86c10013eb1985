//go:build !linux

package arrowfile_test

const canLimitFileSize = false

func limitFileSize(uint64) {}
