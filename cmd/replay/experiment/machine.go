package experiment

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"sort"

	"github.com/eagergc/eagergc/sim"
)

// ReadMachine reads the JSON form of a [sim.Machine]. Its error names the place.
func ReadMachine(r io.Reader) (*sim.Machine, error) {
	m := new(sim.Machine)
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("byte %d: %w", d.InputOffset(), err)
	}
	if d.More() {
		return nil, fmt.Errorf("byte %d: more than one object", d.InputOffset())
	}
	return m, checkMachine(m)
}

func checkMachine(m *sim.Machine) error {
	if !sort.Float64sAreSorted(m.Noise) || len(m.Noise) == 1 {
		return fmt.Errorf("noise: want two or more quantiles, the least first")
	}
	if s := &m.Stall; s.Share > 1 || s.Share > 0 && len(s.Length) < 2 || !sort.Float64sAreSorted(s.Length) {
		return fmt.Errorf("stall: want a share of at most 1, and two or more quantiles of the length, the least first")
	}
	for i, p := range m.After {
		if p.At <= 0 || i > 0 && p.At <= m.After[i-1].At {
			return fmt.Errorf("after: want times above 0, the shortest first")
		}
	}
	return negative(reflect.ValueOf(*m), "")
}

// negative returns an error for the first number of v that is negative or not finite.
func negative(v reflect.Value, name string) error {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if err := negative(v.Field(i), v.Type().Field(i).Tag.Get("json")); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := negative(v.Index(i), name); err != nil {
				return err
			}
		}
	case reflect.Int, reflect.Int64:
		if v.Int() < 0 {
			return fmt.Errorf("%s: negative: %d", name, v.Int())
		}
	case reflect.Float64:
		if f := v.Float(); !(f >= 0) || math.IsInf(f, 0) {
			return fmt.Errorf("%s: %v is not a cost", name, f)
		}
	}
	return nil
}
