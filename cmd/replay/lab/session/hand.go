package session

import (
	"errors"
	"fmt"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
)

// A Hand is a policy that was written in the page.
type Hand struct {
	Name   string
	New    func() gc.Policy // a fresh one
	Failed func() error     // the first error of those that ran
}

// write takes the policy of a question, if it is another than the last.
func (s *Session) write(text string) error {
	switch {
	case text == "":
		s.hand = nil
		return nil
	case s.hand != nil && s.text == text && s.hand.Failed() == nil:
		return nil
	case s.Hand == nil:
		return errors.New("no policy can be written here")
	}
	h, err := s.Hand(text)
	if err != nil {
		return err
	}
	if _, err := sim.ParseContender(h.Name); err == nil {
		return fmt.Errorf("there is a policy %s: String must return another name", h.Name)
	}
	s.hand, s.text = h, text
	return nil
}

// failed returns the error of the policy that was written, if it ran into one.
func (s *Session) failed() error {
	if s.hand == nil {
		return nil
	}
	return s.hand.Failed()
}

// Check reads a policy and returns what is wrong with it.
func (s *Session) Check(text string) (name string, err error) {
	if err := s.write(text); err != nil || s.hand == nil {
		return "", err
	}
	return s.hand.Name, nil
}
