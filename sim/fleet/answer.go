package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Version is that of the encoding of an [Answer] and a [Partial].
const Version = 1

// Magic is what the encoding of every answer begins with.
const Magic = `{"fleet":`

// An Answer is a partial together with its plan: all that a fleet says.
type Answer struct {
	Version int      `json:"fleet"`
	Plan    Plan     `json:"question"`
	Partial *Partial `json:"answer"`
}

// Encode writes the answer as JSON with a line for each group. Equal answers give
// equal bytes.
func (a *Answer) Encode(w io.Writer) error {
	a.Version = Version
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// ErrVersion reports an encoding of another version.
var ErrVersion = errors.New("fleet: encoding of another version")

// Decode reads what Encode has written. An error gives its place.
func Decode(r io.Reader) (*Answer, error) {
	a := new(Answer)
	d := json.NewDecoder(r)
	if err := d.Decode(a); err != nil {
		return nil, fmt.Errorf("fleet: byte %d: %w", d.InputOffset(), err)
	}
	if a.Version != Version {
		return nil, fmt.Errorf("%w: %d, want %d", ErrVersion, a.Version, Version)
	}
	return a, a.check()
}

// check looks for what later code relies on.
func (a *Answer) check() error {
	cells := len(a.Plan.Cells())
	p := a.Partial
	switch {
	case p == nil:
		return errors.New("fleet: no answer")
	case p.Plan == "" && len(p.Groups) == 0:
		return nil
	case p.Plan != a.Plan.ID():
		return errors.New("fleet: the answer is to another question")
	case len(p.Worst) != cells:
		return fmt.Errorf("fleet: %d lists of the worst, want %d", len(p.Worst), cells)
	}
	for name, g := range p.Groups {
		if g == nil || len(g.Cells) != cells {
			return fmt.Errorf("fleet: group %q has not %d cells", name, cells)
		}
	}
	return nil
}

// MarshalBinary returns the partial's encoding, for an engine that moves it.
func (p *Partial) MarshalBinary() ([]byte, error) {
	text, err := json.Marshal(p)
	return append([]byte{Version}, text...), err
}

// UnmarshalBinary reads what MarshalBinary has written.
func (p *Partial) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != Version {
		return ErrVersion
	}
	return json.NewDecoder(bytes.NewReader(b[1:])).Decode(p)
}
