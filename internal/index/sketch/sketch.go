package sketch

import (
	"math"

	"github.com/apache/datasketches-go/hll"
	"github.com/apache/datasketches-go/theta"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
)

// Sketch is the sketches of a column over some rows. It is immutable; its methods are not safe for concurrent use, for the library
// keeps sorted views.
type Sketch struct {
	header
	theta *theta.CompactSketch
	hll   hll.HllSketch
	order quantiles
}

// Estimate is a number of distinct values and the bounds that hold with 95 % confidence.
type Estimate struct{ Value, Low, High float64 }

// Encoding is the type in which values were taken.
func (s *Sketch) Encoding() index.Encoding { return s.enc }

// Distinct estimates the distinct values, the empty one included; nulls and NaN are none.
func (s *Sketch) Distinct() Estimate {
	low, err1 := s.theta.LowerBound(2)
	high, err2 := s.theta.UpperBound(2)
	e := Estimate{Value: s.theta.Estimate(), Low: low, High: high}
	if err1 != nil || err2 != nil {
		e.Low, e.High = 0, float64(s.Values)
	}
	if s.Empty > 0 {
		e.Value, e.Low, e.High = e.Value+1, e.Low+1, e.High+1
	}
	e.High = min(e.High, float64(s.Values))
	return e
}

// DistinctHLL is the same estimate from the HLL sketch alone.
func (s *Sketch) DistinctHLL() float64 {
	v, err := s.hll.GetCompositeEstimate()
	if err != nil || math.IsNaN(v) || v < 0 {
		v = 0
	}
	if s.Empty > 0 {
		v++
	}
	return v
}

// Theta is the payload of an apache-datasketches-theta-v1 blob, and its estimate, the blob's property ndv.
func (s *Sketch) Theta() (blob []byte, ndv int64, err error) {
	blob, err = s.theta.MarshalBinary()
	return blob, int64(math.Round(s.theta.Estimate())), err
}

// Quantiles is the keys (key-v1, long ones cut to 128 bytes) at ascending ranks from 0, the least value, to 1, the greatest. None where
// there is no value.
func (s *Sketch) Quantiles(ranks []float64) ([][]byte, error) { return s.order.at(ranks) }

// Share is the part of the values, from 0 to 1, whose keys lie in the interval.
func (s *Sketch) Share(iv index.Interval) float64 {
	low, high := 0.0, 1.0
	if iv.Lo != nil {
		low = s.order.below(iv.Lo, iv.LoOpen)
	}
	if !iv.NoHi {
		high = s.order.below(iv.Hi, !iv.HiOpen)
	}
	return max(0, high-low)
}

// write writes the three sketches to the body and returns the root.
func (s *Sketch) write(body index.Sink) ([]byte, error) {
	var units [3]index.Unit
	for i, bytes := range []func() ([]byte, error){s.theta.MarshalBinary, s.hll.ToCompactSlice, s.order.bytes} {
		b, err := bytes()
		if err != nil {
			return nil, fault.Wrap(fault.Unclassified, name, err)
		}
		if units[i], err = index.WriteUnit(body, b); err != nil {
			return nil, err
		}
	}
	return s.root(body.Offset(), units), nil
}

// Write writes the sketch as an artifact: body and root.
func (s *Sketch) Write(body index.Sink) (root []byte, err error) { return s.write(body) }
