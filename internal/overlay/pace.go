package overlay

import "context"

// Pace is what the last builds took: sums over them, of which older ones count less and less.
type Pace struct {
	Seconds float64 `json:"seconds"` // of one worker, from the first read of a data file to the upload
	Bytes   int64   `json:"bytes"`   // of data files that were read
	// Rows is the rows that were indexed, by kind and type of the column: "bloom long". Those of an index on two columns count twice.
	Rows map[string]int64 `json:"rows"`
}

const (
	paceKept = 7.0 / 8 // of the older builds at every new one
	maxPaced = 256     // kinds and types
)

// Built records what a build took.
func Built(p Pace) Change { return built{p} }

type built struct{ Pace }

func (b built) apply(_ context.Context, d *draft) error {
	d.header.Pace = d.header.Pace.then(b.Pace)
	d.changed = true
	return nil
}

// then is p, which may be nil, and a newer build.
func (p *Pace) then(last Pace) *Pace {
	out := &Pace{Seconds: last.Seconds, Bytes: last.Bytes, Rows: map[string]int64{}}
	for what, n := range last.Rows {
		out.Rows[what] = n
	}
	if p == nil {
		return out
	}
	out.Seconds += p.Seconds * paceKept
	out.Bytes += int64(float64(p.Bytes) * paceKept)
	for what, n := range p.Rows {
		if n = int64(float64(n) * paceKept); n > 0 && len(out.Rows) < maxPaced {
			out.Rows[what] += n
		}
	}
	return out
}

// Pace is what the last builds took; nil: not known.
func (v *Version) Pace() *Pace { return v.body.header.Pace }
