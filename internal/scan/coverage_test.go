package scan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/expression"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/wave"
)

var long = column.Of(column.Long)

const tableUUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"

func pathOf(i int) string { return fmt.Sprintf("s3://t/%03d.parquet", i) }

// snapshotOf is n files of one row each.
func snapshotOf(n int) *facts.Snapshot {
	s := &facts.Snapshot{TableUUID: tableUUID, Schema: &column.Schema{Fields: indextest.Path(long)}}
	for i := range n {
		s.Files.Path, s.Files.Stated = append(s.Files.Path, pathOf(i)), append(s.Files.Stated, pathOf(i))
		s.Files.Size, s.Files.Records = append(s.Files.Size, 10), append(s.Files.Records, 1)
		s.Files.Format = append(s.Files.Format, facts.Parquet)
	}
	return s
}

// leafBytes takes the leaves of a run.
type leafBytes []byte

func (l *leafBytes) Write(b []byte) (int, error) {
	*l = append(*l, b...)
	return len(b), nil
}

func (*leafBytes) Next() error { return nil }

// runOver is a run over files of one row each, by number, and its leaves.
func runOver(t *testing.T, tag string, values map[int]int64) (*wave.ListedRun, []byte) {
	t.Helper()
	c, err := filemap.NewCollector(indextest.Path(long), true, index.Budget{TempDir: t.TempDir()})
	require.NoError(t, err)
	for i, v := range values {
		require.NoError(t, c.Start(filemap.File{Path: filemap.PathKey(pathOf(i)), Size: 10, Records: 1, Tag: tag}, nil))
		b := column.NewBuilder(long)
		b.Append(column.IntValue(column.Long, v))
		require.NoError(t, c.Add(b.Finish()))
	}
	data := &leafBytes{}
	root, _, err := c.Run(data)
	require.NoError(t, err)
	run, err := filemap.Open(root)
	require.NoError(t, err)
	return &wave.ListedRun{
		Derived: overlay.Derived{Key: "run", Index: "i"}, Run: run,
		Meta: &filemap.Meta{FormatVersion: lineage.FormatVersion, TableUUID: tableUUID, Columns: []lineage.Column{{FieldID: 7, Name: "x"}}},
	}, *data
}

// ask puts a leaf to the runs of a coverage; those in lost are not read.
func ask(t *testing.T, c *Coverage, data [][]byte, lost []bool, l *predicate.Leaf) *mapped {
	t.Helper()
	m := &mapped{Coverage: c, looks: make([]*looking, len(c.Runs)), hits: map[int][]rowset.Range{}}
	for r, run := range c.Runs {
		k := &looking{look: run.Run.Look(l)}
		for _, p := range k.look.Need() {
			k.data = append(k.data, data[r][p.Off:p.Off+p.Len])
		}
		if !lost[r] {
			m.looks[r] = k
		}
	}
	e := &evidence{Planner: &Planner{}, plan: &Plan{}}
	e.gatherHits(m)
	return m
}

// TestFilesThatNoRunSpeaksForAreKept: over random runs that overlap, some with files that were overwritten since, some damaged or unread, a
// file is left out only where a run speaks for it and says that it does not hold the value.
func TestFilesThatNoRunSpeaksForAreKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	out, contested := 0, 0
	for range 400 {
		n := 1 + rng.IntN(150)
		tags := make([]map[string]bool, n) // under which readable runs saw the file
		for i := range tags {
			tags[i] = map[string]bool{}
		}
		var runs []*wave.ListedRun
		var data [][]byte
		var lost []bool
		for range 1 + rng.IntN(3) {
			tag, values := []string{"a", "a", "b"}[rng.IntN(3)], map[int]int64{}
			for i := range n {
				if rng.IntN(3) == 0 {
					values[i] = int64(i % 7)
				}
			}
			if len(values) == 0 {
				continue
			}
			run, leaves := runOver(t, tag, values)
			gone := map[[16]byte]bool{}
			for slot, f := range run.Run.Files {
				if rng.IntN(8) == 0 {
					run.Meta.Invalid, gone[f.Path] = append(run.Meta.Invalid, uint32(slot)), true
				}
			}
			for i := range values {
				if !gone[filemap.PathKey(pathOf(i))] {
					tags[i][tag] = true
				}
			}
			runs, data, lost = append(runs, run), append(data, leaves), append(lost, rng.IntN(8) == 0)
			if rng.IntN(8) == 0 {
				leaves[len(leaves)-1] ^= 1
			}
		}
		want := int64(rng.IntN(8))
		leaf := indextest.Test(long, []predicate.Op{predicate.Equal, predicate.Equal, predicate.Less, predicate.GreaterEqual}[rng.IntN(4)], int(want))
		leaf.Negated = rng.IntN(4) == 0
		m := ask(t, Cover(snapshotOf(n), runs, lineage.Options{TableUUID: tableUUID}), data, lost, leaf)
		for i := range n {
			may := m.may[i>>6]>>(i&63)&1 == 1
			require.Equal(t, len(tags[i]) == 1, m.Covers(i), "file %d, seen as %v", i, tags[i])
			v := indextest.Lit(long, i%7)
			if len(tags[i]) != 1 || indextest.Passes(leaf, &v) {
				require.True(t, may, "file %d, seen as %v", i, tags[i])
			}
			if !may {
				out++
			}
			if len(tags[i]) > 1 {
				contested++
			}
		}
	}
	require.Greater(t, out, 1000)
	require.Greater(t, contested, 100)
}

// TestAFileListedTwiceIsFoundTwice: both listings are covered, and both are hit.
func TestAFileListedTwiceIsFoundTwice(t *testing.T) {
	s := snapshotOf(3)
	s.Files.Path[2], s.Files.Stated[2] = s.Files.Path[0], s.Files.Stated[0]
	run, data := runOver(t, "a", map[int]int64{0: 5, 1: 6})
	c := Cover(s, []*wave.ListedRun{run}, lineage.Options{TableUUID: tableUUID})
	for want, files := range map[int]uint64{5: 0b101, 6: 0b010, 7: 0} {
		m := ask(t, c, [][]byte{data}, []bool{false}, indextest.Test(long, predicate.Equal, want))
		require.Equal(t, files, m.may[0], "%d", want)
	}
}

// TestOtherExpressionsAreNotBelieved: an artifact speaks for an index whose values were made as its own.
func TestOtherExpressionsAreNotBelieved(t *testing.T) {
	text := column.Path{{ID: 7, Name: "x", Type: column.Of(column.String)}}
	var paths []column.Path
	for _, p := range []string{"$.a", "$.b"} {
		e, err := expression.JSONPath(p)
		require.NoError(t, err)
		path, err := e.Of(text)
		require.NoError(t, err)
		paths = append(paths, path)
	}
	paths = append(paths, text)
	exprs := []string{"json $.a", "json $.b", ""}
	for i, path := range paths {
		for j, expr := range exprs {
			a := &overlay.ArtifactInfo{Columns: []lineage.Column{{FieldID: 7, Name: "x", Expr: expr}}}
			require.Equal(t, i == j, exprChanged(a, []column.Path{path}) == "", "%q for %q", expr, exprs[i])
		}
	}
}

// TestLeavesOfOneValue: leaves of one conjunction on a column are judged together where a row has one value of it: not those of lists, of
// a disjunction, of another column, or one that stands elsewhere as well.
func TestLeavesOfOneValue(t *testing.T) {
	test := func(l *predicate.Leaf) *predicate.Tree { return &predicate.Tree{Kind: predicate.Test, Leaf: l} }
	of := func(k predicate.Kind, kids ...*predicate.Tree) *predicate.Tree {
		return &predicate.Tree{Kind: k, Kids: kids}
	}
	low, high := indextest.Test(long, predicate.Greater, 3), indextest.Test(long, predicate.Less, 5)
	other := indextest.Test(long, predicate.Less, 5)
	other.Column.Path = column.Path{{ID: 99, Name: "y", Type: long}}
	got := beside(of(predicate.And, test(low), test(high), test(other)))
	require.Equal(t, map[*predicate.Leaf][]*predicate.Leaf{low: {high}, high: {low}}, got)
	require.Empty(t, beside(of(predicate.Or, test(low), test(high))))
	twice := of(predicate.And, test(high), of(predicate.Or, test(low), of(predicate.And, test(low), test(other))))
	require.Empty(t, beside(twice))
	require.Empty(t, beside(of(predicate.Or, of(predicate.And, test(low), test(high)), of(predicate.And, test(low), test(high)))))
	list := indextest.ListPath(long)
	a := &predicate.Leaf{Column: predicate.Column{Path: list}, Op: predicate.Contains, Values: []column.Value{indextest.Lit(long, 1)}}
	b := &predicate.Leaf{Column: predicate.Column{Path: list}, Op: predicate.Contains, Values: []column.Value{indextest.Lit(long, 2)}}
	require.Empty(t, beside(of(predicate.And, test(a), test(b))))
}
