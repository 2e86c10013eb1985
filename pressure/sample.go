package pressure

// A Sample is one reading of a space. All fields but Space are bytes.
type Sample struct {
	Space    Space
	Live     int64 // handed out and not yet given back; garbage counts until it is freed
	Reserved int64 // taken from the upstream; at least Live
	Limit    int64 // the budget; 0 = none known
}

// Pressure returns live / limit, or 0 when no limit is known.
func (s Sample) Pressure() float64 {
	if s.Limit <= 0 {
		return 0
	}
	return float64(s.Live) / float64(s.Limit)
}

// Headroom returns limit - live, which is negative above the limit. It means
// nothing when no limit is known.
func (s Sample) Headroom() int64 { return s.Limit - s.Live }
