package sketch

import (
	"github.com/apache/datasketches-go/hll"
	"github.com/apache/datasketches-go/theta"

	"github.com/skomerdb/skomer/internal/fault"
)

// Union merges sketches of parts into the sketch of the whole, in any order.
type Union struct {
	header
	started bool
	theta   *theta.Union
	hll     hll.Union
	order   quantiles
}

// Add takes a part. Parts of another value encoding are refused: their values were hashed in other bytes. Of parts of different k
// the smallest decides.
func (u *Union) Add(s *Sketch) error {
	if !u.started {
		if err := u.start(s); err != nil {
			return err
		}
	}
	if s.enc != u.enc || s.ofList != u.ofList {
		return fault.New(fault.Unsupported, name, "values of type %s and of type %s hash differently", s.enc.Kind, u.enc.Kind).
			WithFix("reindex the older files")
	}
	if s.lgK < u.lgK {
		if err := u.shrink(s.lgK); err != nil {
			return err
		}
	}
	if err := u.theta.Update(s.theta); err != nil {
		return fault.Wrap(fault.Corrupt, "theta sketch", err)
	}
	err := guarded("HLL and KLL sketch", func() error {
		u.order.merge(s.order)
		return u.hll.UpdateSketch(s.hll)
	})
	if err == nil {
		u.Counts.add(s.Counts)
	}
	return err
}

func (u *Union) start(s *Sketch) (err error) {
	u.started, u.enc, u.ofList, u.lgK, u.order = true, s.enc, s.ofList, s.lgK, newQuantiles(s.enc)
	if u.theta, err = newThetaUnion(u.lgK); err != nil {
		return err
	}
	u.hll, err = hll.NewUnion(hllLgK)
	return err
}

func newThetaUnion(lgK uint8) (*theta.Union, error) {
	return theta.NewUnion(theta.WithUnionLgK(lgK), theta.WithUnionSeed(seed))
}

// shrink goes on with fewer hashes.
func (u *Union) shrink(lgK uint8) error {
	so, err := u.theta.Result(true)
	if err != nil {
		return err
	}
	u.lgK = lgK
	if u.theta, err = newThetaUnion(lgK); err != nil {
		return err
	}
	return u.theta.Update(so)
}

// Sketch is the union so far; nil of no part.
func (u *Union) Sketch() (*Sketch, error) {
	if !u.started {
		return nil, nil
	}
	s := &Sketch{header: u.header, order: u.order.clone()}
	var err error
	if s.theta, err = u.theta.Result(true); err != nil {
		return nil, err
	}
	s.hll, err = u.hll.GetResult(hll.TgtHllTypeHll8)
	return s, err
}
