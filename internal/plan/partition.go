package plan

import (
	"cmp"
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// partTest lets one partition field of one spec speak about a leaf. A file is asked under the spec it was written with.
type partTest struct {
	spec    int32
	field   *facts.PartitionField
	t       transform
	column  *facts.PartitionColumn
	buckets []int64 // bucket: where rows that match the plain question can be; nil: cannot tell
}

// newPartTests finds, over all specs, the fields that are made from the leaf's column.
func newPartTests(s *facts.Snapshot, l *predicate.Leaf, q *question) []partTest {
	var tests []partTest
	if len(s.Files.SpecID) != s.Files.Len() {
		return nil
	}
	for id, spec := range s.Specs {
		for k := range spec.Fields {
			f := &spec.Fields[k]
			pc := s.Files.Partition[f.ID]
			if f.SourceID != l.Column.ID() || pc == nil || !complete(pc, s.Files.Len()) {
				continue
			}
			p := partTest{spec: int32(id), field: f, t: parseTransform(f.Transform, l.Column.Type()), column: pc}
			if p.t.kind == opaque {
				continue
			}
			if p.t.kind == bucket && (q.op == predicate.Equal || q.op == predicate.In) && hashStable(s, f.SourceID, p.t.of) {
				p.buckets = p.t.buckets(q.values)
			}
			tests = append(tests, p)
		}
	}
	slices.SortFunc(tests, func(a, b partTest) int {
		return cmp.Or(cmp.Compare(a.spec, b.spec), cmp.Compare(a.field.ID, b.field.ID))
	})
	return tests
}

func complete(pc *facts.PartitionColumn, n int) bool {
	return len(pc.Known) == n && len(pc.Null) == n && len(pc.Value) == n
}

// look narrows r by the partition value of file i.
func (p *partTest) look(i int, lt *leafTest, r *rows) {
	if !p.column.Known[i] {
		return
	}
	if p.column.Null[i] {
		r.nan, r.rest = false, false // every transform maps null, and nothing else, to null
		return
	}
	v := &p.column.Value[i]
	switch {
	case p.t.kind == bucket:
		p.lookBucket(v, lt, r)
	case lt.quick:
		if in, ok := p.t.integers(v); ok {
			r.null = false
			lt.proveQuick(in, r)
		}
	default:
		p.lookInterval(v, lt, r)
	}
}

func (p *partTest) lookInterval(v *column.Value, lt *leafTest, r *rows) {
	in, ok := p.t.values(v)
	if !ok {
		return
	}
	r.null = false
	if v.IsNaN() {
		r.rest = false
		return
	}
	r.nan = false
	if lt.q.op > predicate.IsNaN {
		r.proves(signed(lt.q.over(&in), lt.leaf.Negated))
	}
}

func (p *partTest) lookBucket(v *column.Value, lt *leafTest, r *rows) {
	b := v.Int64()
	if v.Kind != column.Int || b < 0 || b >= p.t.param {
		return
	}
	r.null = false
	if p.buckets == nil {
		return
	}
	if _, hit := slices.BinarySearch(p.buckets, b); !hit {
		r.proves(signed(Out, lt.leaf.Negated))
	}
}
