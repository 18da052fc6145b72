package advise

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/store/local"
)

// Range is what an estimate is expected to lie in.
type Range struct{ Low, High float64 }

func (r *Range) add(o Range) {
	r.Low += o.Low
	r.High += o.High
}

func (r Range) times(x float64) Range { return Range{r.Low * x, r.High * x} }

// spreadOf is the range of samples, and a fifth on either side for what they did not see.
func spreadOf(samples []float64) Range {
	return Range{slices.Min(samples) * 0.8, slices.Max(samples) * 1.2}
}

// IndexEstimate is what one index is expected to take.
type IndexEstimate struct {
	Declaration kinds.Declaration
	Size        Range // bytes
	Seconds     Range // of one core, to build
	// Declined is why artifacts of the sample were not worth keeping; "" if they were.
	Declined string
}

// Estimate is what building indexes together is expected to take.
type Estimate struct {
	Files, Rows   int64
	SampledGroups int
	SampledRows   int64
	Indexes       []IndexEstimate
	// Read is the bytes to read, Gets and Puts the requests, Size the bytes to keep, Seconds those of one core, Memory the most bytes held
	// by one worker.
	Read, Gets, Puts, Size, Seconds, Memory Range
}

// Building bounds what a sync may use, as the syncer does.
type Building struct {
	UnitRows  int64 // rows of a segment
	UnitFiles int
	Ahead     int64 // bytes of column data fetched ahead
	Memory    int64 // of one unit
}

// Estimate measures indexes on a few row groups of the snapshot. It writes nothing but spill files of builders, into a folder of its own.
func (r *Reader) Estimate(ctx context.Context, s *facts.Snapshot, all []kinds.Declaration, with Building) (*Estimate, error) {
	if len(all) == 0 {
		return nil, fault.New(fault.Invalid, "estimate", "names no index").WithFix("write for example 'bloom(user_id)'")
	}
	temp, done, err := local.Scratch("estimate")
	if err != nil {
		return nil, err
	}
	defer done()
	paths, cols := columnsOf(all)
	x, err := r.sample(ctx, s, paths)
	if err != nil {
		return nil, err
	}
	e := &Estimate{SampledGroups: len(x.groups)}
	for i := range s.Files.Len() {
		if s.Files.Format[i] == facts.Parquet && !s.Files.Encrypted[i] {
			e.Files++
			e.Rows += s.Files.Records[i]
		}
	}
	owner := owners(all)
	for i, d := range all {
		made, err := x.build(d, cols[i], temp, false)
		if err != nil {
			return nil, err
		}
		one := scaled(d, made, e)
		if owner[i] {
			keys, err := x.mapped(d, cols[i], temp)
			if err != nil {
				return nil, err
			}
			one.Size.add(keys.times(float64(e.Rows)))
		}
		e.Size.add(one.Size)
		e.Seconds.add(one.Seconds)
		e.Indexes = append(e.Indexes, one)
	}
	e.reading(x)
	e.requests(x, distinctColumns(paths), with)
	e.memory(x, with, len(all))
	return e, nil
}

// owners tells which declarations feed a file map.
func owners(all []kinds.Declaration) []bool {
	var as []overlay.Definition
	for i, d := range all {
		x := overlay.Definition{ID: strconv.Itoa(i), Kind: d.Name}
		for _, c := range d.Columns {
			x.FieldIDs = append(x.FieldIDs, c.Leaf().ID)
		}
		as = append(as, x)
	}
	out := make([]bool, len(all))
	for _, x := range maintain.Mapped(as) {
		i, err := strconv.Atoi(x.ID)
		out[i] = err == nil
	}
	return out
}

// A key of a file map takes some 34 bits, and more where few keys share a block.
const mapKeyLow, mapKeyHigh = 4, 8

// mapped is the bytes a row that a file map takes: a key for each distinct value of a row group.
func (x *sample) mapped(d kinds.Declaration, cols []int, temp string) (Range, error) {
	e, _ := kinds.ByName("sketch")
	parts, err := x.build(kinds.Declaration{Entry: e, Columns: d.Columns}, cols, temp, true)
	if err != nil {
		return Range{}, err
	}
	_, rows, inGroup, err := united(parts)
	keys := inGroup * float64(len(parts)) / math.Max(float64(rows), 1)
	return Range{keys * mapKeyLow, keys * mapKeyHigh}, err
}

// columnsOf is the columns of all declarations, each once, and per declaration their numbers.
func columnsOf(all []kinds.Declaration) (paths []column.Path, cols [][]int) {
	for _, d := range all {
		var own []int
		for _, p := range d.Columns {
			at := slices.IndexFunc(paths, func(q column.Path) bool { return q.Leaf().ID == p.Leaf().ID })
			if at < 0 {
				at, paths = len(paths), append(paths, p)
			}
			own = append(own, at)
		}
		cols = append(cols, own)
	}
	return paths, cols
}

// distinctColumns counts the columns of a file that paths are made of.
func distinctColumns(paths []column.Path) int {
	n := 0
	for i, p := range paths {
		if !slices.ContainsFunc(paths[:i], func(q column.Path) bool { return sameColumn(p, q) }) {
			n++
		}
	}
	return n
}

// sketchMost bounds the bytes of a file's sketches, by docs/format/sketch.md, at the default size.
const sketchMost = 164 << 10

// lineageBytes is what an artifact takes beside body and root: its lineage record and its line in the overlay.
const lineageBytes = 1200

// scaled extends the artifacts of the sample to all rows.
func scaled(d kinds.Declaration, sample []made, e *Estimate) IndexEstimate {
	out := IndexEstimate{Declaration: d}
	var size, seconds []float64
	for _, m := range sample {
		e.SampledRows = max(e.SampledRows, int64(m.rows))
		if m.root == nil {
			out.Declined = m.reason
		}
		size = append(size, float64(m.bytes)/float64(m.rows))
		seconds = append(seconds, m.took.Seconds()/float64(m.rows))
	}
	artifacts := float64(e.Files)
	if d.Scope == index.Tiered {
		artifacts = math.Ceil(float64(e.Rows) / (4 << 20))
	}
	out.Size = spreadOf(size).times(float64(e.Rows))
	if d.Name == "sketch" { // grows with a file's rows only until it is full
		least := slices.MinFunc(sample, func(a, b made) int { return cmp.Compare(a.bytes, b.bytes) })
		out.Size = Range{math.Min(out.Size.Low, 0.8*float64(least.bytes*e.Files)), math.Min(out.Size.High, math.Max(sketchMost, 1.2*float64(least.bytes))*float64(e.Files))}
	}
	out.Size.add(Range{artifacts * lineageBytes * 0.5, artifacts * lineageBytes * 1.5})
	out.Seconds = spreadOf(seconds).times(float64(e.Rows))
	return out
}

// reading adds the bytes of the columns and the time to decode and hash them.
func (e *Estimate) reading(x *sample) {
	var bytes, seconds []float64
	rows := int64(0)
	for i := range x.groups {
		g := &x.groups[i]
		rows += int64(g.rows)
		bytes = append(bytes, float64(g.stored)/float64(g.rows))
		// hashing for lineage takes about as long as decoding
		seconds = append(seconds, 2*g.took.Seconds()/float64(g.rows))
	}
	e.SampledRows = rows
	e.Read = spreadOf(bytes).times(float64(e.Rows))
	e.Read.add(Range{float64(e.Files) * 1e3, float64(e.Files) * 64e3}) // footers
	e.Seconds.add(spreadOf(seconds).times(float64(e.Rows)))
}

// requests counts footers, column chunks (neighbours are joined), bundles and commits.
func (e *Estimate) requests(x *sample, columns int, with Building) {
	var groups []float64
	for _, f := range x.files {
		groups = append(groups, float64(f.groups))
	}
	chunks := spreadOf(groups)
	e.Gets = Range{2 * float64(e.Files), float64(e.Files) * (3 + math.Ceil(chunks.High)*float64(columns))}
	units := math.Max(math.Ceil(float64(e.Rows)/float64(with.UnitRows)), math.Ceil(float64(e.Files)/float64(with.UnitFiles)))
	e.Puts = Range{4 * units, 12*units + 8}
}

// batchRows is about the rows that are decoded at a time.
const batchRows = 1024

// memory is what one worker holds: at least the column data fetched ahead and a batch of rows; at most all values of a unit, as
// decoded, once in builders and once on their way, and three times what they write, within the budget of a unit.
func (e *Estimate) memory(x *sample, with Building, indexes int) {
	var held []float64
	for i := range x.groups {
		held = append(held, float64(x.groups[i].held)/float64(x.groups[i].rows))
	}
	unit := min(float64(with.UnitRows)/math.Max(float64(e.Rows), 1), 1)
	row, rows := spreadOf(held), float64(e.Rows)*unit
	e.Memory = Range{
		min(e.Read.Low*unit, 2*float64(with.Ahead)) + row.Low*min(rows, batchRows),
		min(e.Read.High*unit, 2*float64(with.Ahead)) + min(2*row.High*rows+3*e.Size.High*unit+float64(indexes)*1e6, float64(with.Memory)),
	}
}

// Time is the seconds of wall time with so many workers on a store.
func (e *Estimate) Time(p plan.Profile, workers int) Range {
	n := float64(max(workers, 1))
	out := e.Seconds.times(1 / n)
	for _, side := range []struct {
		to              *float64
		gets, read, put float64
	}{{&out.Low, e.Gets.Low, e.Read.Low, e.Puts.Low}, {&out.High, e.Gets.High, e.Read.High, e.Puts.High}} {
		*side.to += side.gets*p.Request + side.read/p.BytesPerSecond + side.put*p.Wave
	}
	return out
}
