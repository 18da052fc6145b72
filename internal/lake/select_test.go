package lake

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/factsblob"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
	"github.com/skomerdb/skomer/internal/tabletest"
)

func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("SKOMER_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 7))
}

// shelf keeps packs in memory.
type shelf struct {
	s     *mem.Store
	heads map[string]KeptAt
}

func (k *shelf) Find(manifest string) (KeptAt, bool) {
	at, ok := k.heads[manifest]
	return at, ok
}

func (k *shelf) Store() store.Store { return k.s }

// shelve packs all manifests of a snapshot, as random parts.
func shelve(t testing.TB, r *rand.Rand, v *View) *shelf {
	t.Helper()
	k := &shelf{s: mem.New(), heads: map[string]KeptAt{}}
	listed, err := v.Manifests(context.Background())
	require.NoError(t, err)
	for n := 0; len(listed) > 0; n++ {
		some := listed[:1+r.IntN(len(listed))]
		listed = listed[len(some):]
		k.pack(t, v, fmt.Sprint("pack-", n), some)
	}
	return k
}

func (k *shelf) pack(t testing.TB, v *View, key string, some []Manifest) {
	var paths []string
	for _, m := range some {
		paths = append(paths, m.Path)
	}
	object, heads, err := v.Pack(context.Background(), nil, paths)
	require.NoError(t, err)
	_, err = k.s.PutIf(context.Background(), key, "", object)
	require.NoError(t, err)
	for i, h := range heads {
		k.heads[paths[i]] = KeptAt{Key: key, Head: h}
	}
}

// question is a random predicate over a snapshot: its literals are bounds and partition values of its files, and others.
func question(r *rand.Rand, s *facts.Snapshot, depth int) *predicate.Tree {
	if depth > 0 && r.IntN(2) == 0 {
		t := &predicate.Tree{Kind: []predicate.Kind{predicate.And, predicate.Or}[r.IntN(2)]}
		for range 2 + r.IntN(2) {
			t.Kids = append(t.Kids, question(r, s, depth-1))
		}
		return t
	}
	var paths []column.Path
	s.Schema.Walk(func(p column.Path) bool {
		if !p.Leaf().Type.Kind.Nested() && !p.Repeated() {
			paths = append(paths, slices.Clone(p))
		}
		return true
	})
	if len(paths) == 0 {
		return &predicate.Tree{Kind: predicate.True}
	}
	l := &predicate.Leaf{Column: predicate.Column{Path: paths[r.IntN(len(paths))]}, Negated: r.IntN(5) == 0, Dialect: predicate.Dialect(r.IntN(2))}
	ops := []predicate.Op{
		predicate.IsNull, predicate.Equal, predicate.Less, predicate.LessEqual, predicate.Greater, predicate.GreaterEqual, predicate.In, predicate.StartsWith,
	}
	l.Op = ops[r.IntN(len(ops))]
	if l.Op == predicate.StartsWith && l.Column.Type().Kind != column.String {
		l.Op = predicate.Equal
	}
	n := 1
	switch l.Op {
	case predicate.IsNull:
		n = 0
	case predicate.In:
		n = 1 + r.IntN(4)
	}
	for range n {
		l.Values = append(l.Values, literal(r, s, l.Column))
	}
	return &predicate.Tree{Kind: predicate.Test, Leaf: l}
}

func literal(r *rand.Rand, s *facts.Snapshot, c predicate.Column) column.Value {
	t := c.Type()
	var b []byte
	if m := s.Files.Columns[c.ID()]; m != nil && s.Files.Len() > 0 {
		i := r.IntN(s.Files.Len())
		if b = m.Lower[i]; r.IntN(2) == 0 {
			b = m.Upper[i]
		}
	}
	n := r.Int64N(200) - 20
	if len(b) == 4 {
		n = int64(int32(binary.LittleEndian.Uint32(b)))
	} else if len(b) == 8 {
		n = int64(binary.LittleEndian.Uint64(b))
	}
	n += r.Int64N(3) - 1
	switch t.Kind {
	case column.Bool:
		return column.BoolValue(n&1 != 0)
	case column.Float:
		return column.Value{Kind: column.Float, Lo: uint64(uint32(n))}
	case column.Double:
		return column.Value{Kind: column.Double, Lo: uint64(n)}
	case column.Decimal:
		return column.DecimalValue(n>>63, uint64(n), t.Scale)
	case column.UUID, column.Fixed:
		return column.BytesValue(t.Kind, append(b, make([]byte, t.Size())...)[:t.Size()])
	case column.String, column.Binary, column.Variant, column.Geometry, column.Geography:
		return column.Value{Kind: t.Kind, S: string(b)}
	default:
		if t.Kind == column.Int || t.Kind == column.Date {
			n = int64(int32(n))
		}
		return column.IntValue(t.Kind, n)
	}
}

// subset is some files of a snapshot, with the metrics of some fields.
func subset(s *facts.Snapshot, rows, fields []int) *facts.Files {
	f := &facts.Files{Partition: map[int]*facts.PartitionColumn{}, Columns: map[int]*facts.ColumnFacts{}}
	for _, i := range rows {
		f.Path, f.Stated = append(f.Path, s.Files.Path[i]), append(f.Stated, s.Files.Stated[i])
		f.Format, f.Size, f.Records = append(f.Format, s.Files.Format[i]), append(f.Size, s.Files.Size[i]), append(f.Records, s.Files.Records[i])
		f.SpecID, f.Sequence = append(f.SpecID, s.Files.SpecID[i]), append(f.Sequence, s.Files.Sequence[i])
		f.FirstRowID, f.Snapshot = append(f.FirstRowID, s.Files.FirstRowID[i]), append(f.Snapshot, s.Files.Snapshot[i])
		f.Encrypted = append(f.Encrypted, s.Files.Encrypted[i])
		f.Manifests = append(f.Manifests, s.Files.Manifests[s.Files.Manifest[i]]) // by file, see requireFiles
	}
	for id, c := range s.Files.Partition {
		p := &facts.PartitionColumn{}
		for _, i := range rows {
			p.Known, p.Null, p.Value = append(p.Known, c.Known[i]), append(p.Null, c.Null[i]), append(p.Value, c.Value[i])
		}
		f.Partition[id] = p
	}
	for id, c := range s.Files.Columns {
		if !slices.Contains(fields, id) {
			continue
		}
		m := unknownColumn(len(rows))
		for k, i := range rows {
			m.Lower[k], m.Upper[k], m.Values[k], m.Nulls[k], m.NaNs[k] = c.Lower[i], c.Upper[i], c.Values[i], c.Nulls[i], c.NaNs[i]
		}
		f.Columns[id] = m
	}
	return f
}

// requireFiles holds a selection against the same files of the whole snapshot. Columns in which nothing is known may be absent.
func requireFiles(t *testing.T, whole *facts.Snapshot, rows, fields []int, got *facts.Snapshot) {
	t.Helper()
	var all []int
	for i := range got.Files.Len() {
		all = append(all, i)
	}
	want, have := subset(whole, rows, fields), subset(got, all, fields)
	for id, p := range want.Partition {
		if have.Partition[id] == nil {
			require.NotContains(t, p.Known, true)
			delete(want.Partition, id)
		}
	}
	for id, c := range want.Columns {
		if have.Columns[id] == nil {
			require.Equal(t, unknownColumn(len(rows)), c)
			delete(want.Columns, id)
		}
	}
	require.Equal(t, want, have)
}

// requireSelect asks a view random questions and demands what Prune of the whole snapshot answers.
func requireSelect(t *testing.T, r *rand.Rand, open func() *View, kept Kept, rounds int) (ruled int) {
	t.Helper()
	ctx := context.Background()
	whole, err := open().Snapshot(ctx, nil)
	require.NoError(t, err)
	v := open()
	for range rounds {
		tree := question(r, whole, 2)
		var rows []int
		for i, a := range plan.Prune(whole, tree).Answers {
			if a != plan.Out {
				rows = append(rows, i)
			}
		}
		sieve := plan.NewSieve(v.Shell(), tree)
		got, ok, err := v.Select(ctx, kept, sieve, whole.Files.Len())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, whole.Files.Len(), got.Ruled+got.Snapshot.Files.Len(), "%s", tree)
		require.Len(t, got.Snapshot.Files.Path, len(rows), "%s", tree)
		if len(rows) > 0 {
			requireFiles(t, whole, rows, sieve.Fields(), got.Snapshot)
		}
		require.Equal(t, whole.Schema, got.Snapshot.Schema)
		ruled += got.Ruled
	}
	again, err := v.Snapshot(ctx, kept)
	require.NoError(t, err)
	again.Files.Stored = whole.Files.Stored // kept facts hold no column sizes: they are for estimates
	require.Equal(t, whole, again, "from what was kept, and partly read before")
	return ruled
}

// TestSelectRealTables: over all real tables, every snapshot read through a filter, with and without facts that were kept, gives the
// files that Prune of the whole snapshot keeps, and the whole snapshot read from kept facts equals that read from manifests.
func TestSelectRealTables(t *testing.T) {
	r := seeded(t)
	ruled, tables := 0, 0
	for _, dir := range tableDirs(t) {
		for _, name := range metadataFiles(t, dir) {
			if _, err := New(Options{}).Open(context.Background(), name); err != nil {
				continue // broken on purpose
			}
			_, table := openReal(t, dir, name)
			for _, info := range table.Snapshots() {
				open := func() *View {
					_, fresh := openReal(t, dir, name)
					v, err := fresh.View(Selector{ID: info.ID})
					require.NoError(t, err)
					return v
				}
				if _, err := open().Snapshot(context.Background(), nil); err != nil {
					continue // broken on purpose
				}
				if v := open(); true {
					_, deletes, err := v.Size(context.Background())
					require.NoError(t, err)
					k := shelve(t, r, v)
					if deletes {
						requireWhole(t, open, k)
						continue
					}
					ruled += requireSelect(t, r, open, k, 6)
					ruled += requireSelect(t, r, open, nil, 2)
				}
				tables++
			}
		}
	}
	require.Greater(t, tables, 60)
	require.Greater(t, ruled, 1000)
}

// requireWhole demands that a snapshot read from kept facts equals that of its manifests.
func requireWhole(t *testing.T, open func() *View, kept Kept) {
	t.Helper()
	want, err := open().Snapshot(context.Background(), nil)
	require.NoError(t, err)
	var c store.Counter
	got, err := open().Snapshot(store.WithCounter(context.Background(), &c), kept)
	require.NoError(t, err)
	got.Files.Stored = want.Files.Stored
	require.Equal(t, want, got)
}

// TestSelectRandomTables: the same over tables whose schema, specs and mapping change while they are written.
func TestSelectRandomTables(t *testing.T) {
	r := seeded(t)
	ctx := context.Background()
	rounds := 12
	if n, err := strconv.Atoi(os.Getenv("SKOMER_ROUNDS")); err == nil {
		rounds = n
	}
	ruled := 0
	for range rounds {
		dir := t.TempDir()
		e := tabletest.CreateEvolving(t, r, dir)
		for range 6 {
			e.Append(t, 4)
			e.Evolve(t)
		}
		table, err := New(Options{}).Open(ctx, dir)
		require.NoError(t, err)
		for _, info := range table.Snapshots() {
			open := func() *View {
				table, err := New(Options{}).Open(ctx, dir)
				require.NoError(t, err)
				v, err := table.View(Selector{ID: info.ID})
				require.NoError(t, err)
				return v
			}
			k := shelve(t, r, open())
			if _, deletes, err := open().Size(ctx); err != nil || deletes {
				require.NoError(t, err)
				requireWhole(t, open, k)
				continue
			}
			ruled += requireSelect(t, r, open, k, 10)
			ruled += requireSelect(t, r, open, nil, 3)
		}
	}
	require.Positive(t, ruled)
}

// TestKeptFactsAreNotTrusted: whatever happened to a pack, the answers are those of the manifests.
func TestKeptFactsAreNotTrusted(t *testing.T) {
	r := seeded(t)
	ctx := context.Background()
	dir := t.TempDir()
	table := tabletest.Create(t, r, dir)
	for range 4 {
		table.Append(t, 3, 20)
	}
	open := func() *View {
		table, err := New(Options{}).Open(ctx, dir)
		require.NoError(t, err)
		v, err := table.View(Current())
		require.NoError(t, err)
		return v
	}
	for name, harm := range map[string]func(k *shelf){
		"gone": func(k *shelf) {
			for _, at := range k.heads {
				require.NoError(t, k.s.Delete(ctx, []string{at.Key}))
			}
		},
		"flipped": func(k *shelf) {
			for _, at := range k.heads {
				old := k.s.Fetch(ctx, []store.Read{{Key: at.Key}})[0]
				b := slices.Clone(old.Data[0])
				for range 20 {
					b[r.IntN(len(b))] ^= 1 << r.IntN(8)
				}
				_, err := k.s.PutIf(ctx, at.Key, old.Tag, b)
				require.NoError(t, err)
			}
		},
		"cut": func(k *shelf) {
			for _, at := range k.heads {
				old := k.s.Fetch(ctx, []store.Read{{Key: at.Key}})[0]
				_, err := k.s.PutIf(ctx, at.Key, old.Tag, old.Data[0][:len(old.Data[0])/2])
				require.NoError(t, err)
			}
		},
		"of other manifests": func(k *shelf) {
			var all []string
			for m := range k.heads {
				all = append(all, m)
			}
			first := k.heads[all[0]]
			for i, m := range all[:len(all)-1] {
				k.heads[m] = k.heads[all[i+1]]
			}
			k.heads[all[len(all)-1]] = first
		},
		"elsewhere": func(k *shelf) {
			for m, at := range k.heads {
				at.Off, at.Len = r.Int64N(1000), r.Int64N(1000)
				k.heads[m] = at
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				k := shelve(t, r, open())
				harm(k)
				requireSelect(t, r, open, k, 5)
				requireWhole(t, open, k)
			}
		})
	}
}

// TestKeptFactsAreKeptToTheirManifest: facts of a manifest of the same path and another length are not believed.
func TestKeptFactsAreKeptToTheirManifest(t *testing.T) {
	r := seeded(t)
	ctx := context.Background()
	dir := t.TempDir()
	tabletest.Create(t, r, dir).Append(t, 3, 20)
	table, err := New(Options{}).Open(ctx, dir)
	require.NoError(t, err)
	v, err := table.View(Current())
	require.NoError(t, err)
	k := shelve(t, r, v)
	fresh, err := New(Options{}).Open(ctx, dir)
	require.NoError(t, err)
	w, err := fresh.View(Current())
	require.NoError(t, err)
	require.NoError(t, w.list(ctx))
	for _, p := range w.parts {
		p.listed.Length++
	}
	_, err = w.Snapshot(ctx, k)
	require.NoError(t, err)
	for _, p := range w.parts {
		require.True(t, p.lost)
	}
}

// TestKeptFactsAreRead: kept facts are used, and for few requests: two waves beside the manifest list.
func TestKeptFactsAreRead(t *testing.T) {
	r := seeded(t)
	ctx := context.Background()
	dir := t.TempDir()
	table := tabletest.Create(t, r, dir)
	for range 30 {
		table.Append(t, 1, 2)
	}
	opened, err := New(Options{}).Open(ctx, dir)
	require.NoError(t, err)
	v, err := opened.View(Current())
	require.NoError(t, err)
	listed, err := v.Manifests(ctx)
	require.NoError(t, err)
	require.Len(t, listed, 30)
	k := &shelf{s: mem.New(), heads: map[string]KeptAt{}}
	k.pack(t, v, "pack", listed)
	opened, err = New(Options{}).Open(ctx, dir)
	require.NoError(t, err)
	v, err = opened.View(Current())
	require.NoError(t, err)
	var c store.Counter
	_, err = v.Snapshot(store.WithCounter(ctx, &c), k)
	require.NoError(t, err)
	require.EqualValues(t, 3, c.Usage().Waves, "the list, the heads, the sections")
	require.Equal(t, factsblob.Origin{Path: listed[0].Path, Length: listed[0].Length, Tag: v.parts[0].blob.Tag}, v.parts[0].blob.Origin)
	require.NotEmpty(t, v.parts[0].blob.Tag)
}

// TestU54FiltersReachManifests: of a manifest that the list rules out not a byte is read, and of the others only what the filter needs
// is kept.
func TestU54FiltersReachManifests(t *testing.T) { // Daft#5588
	ctx := context.Background()
	w := create(t, lakewrite.Spec{
		Schema: schemaOf(0, field(1, "a", column.Int), field(2, "b", column.Int)), Partition: identity(1000, 1, "a"),
	})
	bound := func(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
	for day := range 5 {
		f := data(w, fmt.Sprint("day-", day), facts.PartitionValue{Value: column.IntValue(column.Int, int64(day))})
		f.Metrics = map[int]lakewrite.Metric{1: {Lower: bound(day), Upper: bound(day)}, 2: {Lower: bound(0), Upper: bound(9)}}
		appendFiles(t, w, f)
	}
	v, err := w.open(t).View(Current())
	require.NoError(t, err)
	require.NoError(t, v.list(ctx))
	require.Len(t, v.parts, 5)
	for i, p := range v.parts {
		day := 4 - i // the newest come first
		p.listed.Partitions = []facts.Summary{{Lower: bound(day), Upper: bound(day)}}
		if day != 3 {
			p.path += ".gone"
		}
	}
	leaf := &predicate.Leaf{
		Column: predicate.Column{Path: v.Shell().Schema.ByID(1)}, Op: predicate.Equal, Values: []column.Value{column.IntValue(column.Int, 3)},
	}
	s, ok, err := v.Select(ctx, nil, plan.NewSieve(v.Shell(), &predicate.Tree{Kind: predicate.Test, Leaf: leaf}), 5)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 4, s.Ruled)
	require.Len(t, s.Snapshot.Files.Path, 1)
	require.Contains(t, s.Snapshot.Files.Path[0], "day-3")
	require.NotContains(t, v.parts[1].m.Columns, 2)
}
