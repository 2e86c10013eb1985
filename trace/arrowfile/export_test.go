package arrowfile

import (
	"bytes"
	"io"
)

// Messages reads the messages of a file, and nothing in them.
func Messages(file []byte) error {
	d := &frames{from: bytes.NewReader(file), bounds: Bounds{}.withDefaults()}
	for {
		if _, err := d.Message(); err == io.EOF {
			return d.cut
		} else if err != nil {
			return err
		}
	}
}
