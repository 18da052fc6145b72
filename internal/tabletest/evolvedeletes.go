package tabletest

import (
	"maps"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
)

// delete commits position or equality deletes to a random branch.
func (e *Evolving) delete(t testing.TB) {
	branch := e.someBranch()
	head := e.heads[branch]
	if e.Writer.FormatVersion < 2 || len(head.files) == 0 {
		return
	}
	gone := maps.Clone(head.gone)
	if gone == nil {
		gone = map[*writtenFile]map[int]bool{}
	}
	hide := func(f *writtenFile, pos int) {
		if gone[f] = maps.Clone(gone[f]); gone[f] == nil {
			gone[f] = map[int]bool{}
		}
		gone[f][pos] = true
	}
	var change lakewrite.Change
	target := head.files[e.rng.IntN(len(head.files))]
	switch whole := unpartitioned(e.spec); {
	case e.rng.IntN(3) == 0 || e.bareMode:
		change.Add = []lakewrite.File{e.deletePositions(t, target, hide)}
		e.did("delete positions of %s in %s", target.path, branch)
	case whole || target.spec == e.spec:
		change.Add = []lakewrite.File{e.deleteKeys(t, head, target, whole, hide)}
		e.did("delete keys %v in %s", change.Add[0].EqualityID, branch)
	default:
		return
	}
	e.commit(t, branch, head.files, change)
	e.heads[branch].gone = gone
}

// unpartitioned specs have no fields, or only void ones.
func unpartitioned(s *facts.Spec) bool {
	return !slices.ContainsFunc(s.Fields, func(p facts.PartitionField) bool { return p.Transform != "void" })
}

// evolved is what of Table writes delete files.
func (e *Evolving) evolved(s *column.Schema) *Table {
	return &Table{Dir: e.Dir, Schema: s, Leaves: Leaves(s), Writer: e.Writer, rng: e.rng}
}

// deletePositions writes a position delete file in the partition of its one data file.
func (e *Evolving) deletePositions(t testing.TB, f *writtenFile, hide func(*writtenFile, int)) lakewrite.File {
	table := e.evolved(e.schema)
	var rows []Row
	for _, pos := range table.somePositions(len(f.rows)) {
		rows = append(rows, Row{{Val: column.StringValue(table.spelled(f.path))}, {Val: column.IntValue(column.Long, int64(pos))}})
		hide(f, pos)
	}
	path, format := table.writeDeletes(t, "pos", positionSchema, rows)
	out := table.stat(t, path, lakewrite.PositionDeletes, format, len(rows), e.Writer.LastSequence+1)
	out.Spec, out.Partition = &f.spec.ID, f.tuple
	return out
}

// deleteKeys writes an equality delete file under the present spec, which applies to older files of the target's partition, or to
// all older files where the spec is unpartitioned.
func (e *Evolving) deleteKeys(t testing.TB, head *moment, target *writtenFile, whole bool, hide func(*writtenFile, int)) lakewrite.File {
	table := e.evolved(e.schema)
	leaves := table.keyLeaves()
	sequence := e.Writer.LastSequence + 1
	var keys []Row
	from := e.seen(target, table.Leaves)
	for range e.rng.IntN(6) {
		if len(from) == 0 {
			break
		}
		row := from[e.rng.IntN(len(from))]
		var key Row
		for _, i := range leaves {
			key = append(key, row[i])
		}
		keys = append(keys, key)
	}
	for _, f := range head.files {
		if f.sequence >= sequence || !whole && (f.spec != e.spec || !sameTuple(f.tuple, target.tuple)) {
			continue
		}
		for pos, row := range e.seen(f, table.Leaves) {
			if slices.ContainsFunc(keys, func(k Row) bool { return sameKey(k, row, leaves) }) {
				hide(f, pos)
			}
		}
	}
	path, format := table.writeDeletes(t, "eq", table.project(leaves), keys)
	out := table.stat(t, path, lakewrite.EqualityDeletes, format, len(keys), sequence)
	out.Spec, out.Partition = &e.spec.ID, target.tuple
	if whole {
		out.Partition = nil
		for range e.spec.Fields {
			out.Partition = append(out.Partition, facts.PartitionValue{Null: true})
		}
	}
	for _, i := range leaves {
		out.EqualityID = append(out.EqualityID, table.Leaves[i].Path.Leaf().ID)
	}
	return out
}

// sameTuple compares partition values of one spec, some maybe from before a promotion.
func sameTuple(a, b []facts.PartitionValue) bool {
	return slices.EqualFunc(a, b, func(x, y facts.PartitionValue) bool {
		return x.Null == y.Null && x.Value.Lo == y.Value.Lo && x.Value.Hi == y.Value.Hi && x.Value.S == y.Value.S
	})
}
