package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// BenchmarkPrune judges a million files with facts in memory: columns longs, each file a narrow range of its own, and a day
// partition. ns/file is the number to watch.
func BenchmarkPrune(b *testing.B) {
	const files, columns = 1_000_000, 12
	s := wideSnapshot(files, columns)
	leaf := func(c int, op predicate.Op, v column.Value) *predicate.Tree {
		l := &predicate.Leaf{Column: predicate.Column{Path: column.Path{s.Schema.Fields[c]}}, Op: op, Values: []column.Value{v}}
		return &predicate.Tree{Kind: predicate.Test, Leaf: l}
	}
	all := &predicate.Tree{Kind: predicate.And}
	either := &predicate.Tree{Kind: predicate.Or}
	for c := range columns {
		all.Kids = append(all.Kids, leaf(c, predicate.GreaterEqual, long(0))) // rules nothing out: every leaf is asked of every file
		either.Kids = append(either.Kids, leaf(c, predicate.Equal, long(500_000)))
	}
	stamp := leaf(columns, predicate.Equal, column.IntValue(column.TimestampTZ, 18_000*microsPerDay))
	text := leaf(columns+1, predicate.Equal, column.StringValue("user-500000"))
	for _, x := range []struct {
		name string
		tree *predicate.Tree
	}{
		{"one_column", leaf(0, predicate.Equal, long(500_000))},
		{"day_partition", stamp},
		{"string_column", text},
		{"12_columns_and_hit", &predicate.Tree{Kind: predicate.And, Kids: append([]*predicate.Tree{stamp}, either.Kids...)}},
		{"12_columns_or", either},
		{"12_columns_and_all", all},
	} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				Prune(s, x.tree)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/files, "ns/file")
		})
	}
}

func wideSnapshot(files, columns int) *facts.Snapshot {
	r := rand.New(rand.NewPCG(1, 2))
	s := &facts.Snapshot{Schema: &column.Schema{}, Specs: map[int]*facts.Spec{1: {ID: 1, Fields: []facts.PartitionField{
		{ID: partitionID, SourceID: columns + 1, Name: "ts_day", Transform: "day"},
	}}}}
	f := &s.Files
	f.Path = make([]string, files)
	f.Columns = map[int]*facts.ColumnFacts{}
	pc := &facts.PartitionColumn{Type: column.Of(column.Date)}
	f.Partition = map[int]*facts.PartitionColumn{partitionID: pc}
	for c := range columns + 2 {
		t := column.Of(column.Long)
		switch c {
		case columns:
			t = column.Of(column.TimestampTZ)
		case columns + 1:
			t = column.Of(column.String)
		}
		s.Schema.Fields = append(s.Schema.Fields, column.Field{ID: c + 1, Name: fmt.Sprint("c", c), Type: t})
		cf := &facts.ColumnFacts{}
		f.Columns[c+1] = cf
		for range files {
			x := r.Int64N(1_000_000)
			lower, upper := serial(long(x)), serial(long(x+100))
			if c == columns+1 {
				lower, upper = fmt.Appendf(nil, "user-%06d", x), fmt.Appendf(nil, "user-%06d", x+100)
			}
			cf.Lower, cf.Upper = append(cf.Lower, lower), append(cf.Upper, upper)
			cf.Values, cf.Nulls, cf.NaNs = append(cf.Values, 1000), append(cf.Nulls, 0), append(cf.NaNs, facts.Unknown)
		}
		if c == columns {
			cf.Lower, cf.Upper = nil, nil
		}
	}
	for i := range files {
		f.Records = append(f.Records, 1000)
		f.SpecID = append(f.SpecID, 1)
		pc.Known, pc.Null = append(pc.Known, true), append(pc.Null, false)
		pc.Value = append(pc.Value, column.IntValue(column.Date, int64(17_000+i%2000)))
	}
	return s
}
