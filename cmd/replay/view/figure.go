package view

// A Figure is one kind of chart of a recording: what the script draws, and the
// table behind it.
type Figure struct {
	Kind    string      `json:"kind"`
	Name    string      `json:"name"`
	Caption string      `json:"caption"`
	Table   Table       `json:"table"`
	Data    []LineChart `json:"-"` // side by side
}
