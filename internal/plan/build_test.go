package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// stated is what a manifest says of one file; counts start as unknown.
type stated struct {
	records, values, nulls, nans int64
	lower, upper                 []byte
	spec                         int
	part                         *facts.PartitionValue // of partition field 1000 + spec
}

func file(records int64) stated {
	return stated{records: records, values: facts.Unknown, nulls: facts.Unknown, nans: facts.Unknown}
}

func (f stated) counts(values, nulls int64) stated { f.values, f.nulls = values, nulls; return f }

func (f stated) nanCount(n int64) stated { f.nans = n; return f }

func (f stated) bounds(lower, upper []byte) stated { f.lower, f.upper = lower, upper; return f }

func (f stated) in(spec int, v column.Value) stated {
	f.spec, f.part = spec, &facts.PartitionValue{Value: v}
	return f
}

func (f stated) inNull(spec int) stated {
	f.spec, f.part = spec, &facts.PartitionValue{Null: true}
	return f
}

// path is a top-level column with columnID.
func path(t column.Type) column.Path {
	return column.Path{{ID: columnID, Name: "x", Type: t}}
}

// snapshot states files of a column; spec i+1 has the one field transforms[i] of it.
func snapshot(p column.Path, transforms []string, files ...stated) *facts.Snapshot {
	schema := &column.Schema{Fields: []column.Field{p[0]}}
	s := &facts.Snapshot{Schema: schema, Schemas: map[int]*column.Schema{0: schema}, Specs: map[int]*facts.Spec{0: {}}}
	f := &s.Files
	f.Partition = map[int]*facts.PartitionColumn{}
	for i, tr := range transforms {
		id := partitionID + i + 1
		s.Specs[i+1] = &facts.Spec{ID: i + 1, Fields: []facts.PartitionField{{ID: id, SourceID: columnID, Name: "p", Transform: tr}}}
		f.Partition[id] = &facts.PartitionColumn{}
	}
	cf := &facts.ColumnFacts{}
	f.Columns = map[int]*facts.ColumnFacts{p.Leaf().ID: cf}
	for _, x := range files {
		f.Path = append(f.Path, "f")
		f.Records = append(f.Records, x.records)
		f.SpecID = append(f.SpecID, int32(x.spec))
		cf.Values, cf.Nulls, cf.NaNs = append(cf.Values, x.values), append(cf.Nulls, x.nulls), append(cf.NaNs, x.nans)
		cf.Lower, cf.Upper = append(cf.Lower, x.lower), append(cf.Upper, x.upper)
		for i := range transforms {
			pc := f.Partition[partitionID+i+1]
			known := x.spec == i+1 && x.part != nil
			pc.Known = append(pc.Known, known)
			var v facts.PartitionValue
			if known {
				v = *x.part
			}
			pc.Null, pc.Value = append(pc.Null, v.Null), append(pc.Value, v.Value)
		}
	}
	return s
}

func ask1(p column.Path, op predicate.Op, values ...column.Value) *predicate.Tree {
	return &predicate.Tree{Kind: predicate.Test, Leaf: &predicate.Leaf{Column: predicate.Column{Path: p}, Op: op, Values: values}}
}

// negated is the negation of a leaf as it stands, without a simpler form.
func negated(t *predicate.Tree) *predicate.Tree {
	l := *t.Leaf
	l.Negated = !l.Negated
	return &predicate.Tree{Kind: predicate.Test, Leaf: &l}
}

func iceberg(t *predicate.Tree) *predicate.Tree {
	l := *t.Leaf
	l.Dialect = predicate.Iceberg
	return &predicate.Tree{Kind: predicate.Test, Leaf: &l}
}

func and(kids ...*predicate.Tree) *predicate.Tree {
	return &predicate.Tree{Kind: predicate.And, Kids: kids}
}

func or(kids ...*predicate.Tree) *predicate.Tree {
	return &predicate.Tree{Kind: predicate.Or, Kids: kids}
}

func requireAnswers(t *testing.T, s *facts.Snapshot, tree *predicate.Tree, want ...Answer) {
	t.Helper()
	p := Prune(s, tree)
	var why []string
	for i := range p.Answers {
		why = append(why, p.Reason(i).String())
		require.Equal(t, p.Answers[i], p.Reason(i).Answer)
	}
	require.Equal(t, want, p.Answers, "%q", why)
}

func long(x int64) column.Value        { return column.IntValue(column.Long, x) }
func integer(x int64) column.Value     { return column.IntValue(column.Int, x) }
func str(s string) column.Value        { return column.StringValue(s) }
func double(f float64) column.Value    { return column.DoubleValue(f) }
func timestamp(x int64) column.Value   { return column.IntValue(column.Timestamp, x) }
func uuidOf(b []byte) column.Value     { return column.BytesValue(column.UUID, b) }
func unscaled(x int64) column.Value    { return column.DecimalValue(x>>63, uint64(x), 0) }
func float32Of(f float32) column.Value { return column.FloatValue(f) }
