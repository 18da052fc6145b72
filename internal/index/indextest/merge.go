package indextest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// MergeLaw is the property test of a kind's Merge: random artifacts of every type are merged by random maps (whole sources one after
// the other, sources that lost rows, rows in another order, stretches that moved apart) and merged again. It fails on a wrong "no" or
// claim about the new rows, on a row that comes back, on a merge of whole sources that differs from the artifact built from their
// rows, and on maps under which the kind always declines although it should not.
type MergeLaw struct {
	Kind   index.Kind
	Params index.Params
	Lists  bool // columns are list elements
	Rounds int  // × SKOMER_LONG
	// Same tells that a merge by any map has the bytes of the artifact built from the new rows.
	Same bool
	// Pieces tells that a merge may cut its bytes otherwise than a build, even one of whole sources.
	Pieces bool
	// Declines names the maps under which the kind may always decline.
	Declines []string

	temp             string
	merged, declined map[string]int
}

// held is rows of a column, or of lists.
type held struct {
	column Column
	lists  lists
	isList bool
}

func (h *held) len() int {
	if h.isList {
		return len(h.lists.rows)
	}
	return len(h.column.Values)
}

// origin is a row of a source.
type origin struct{ source, row uint32 }

// pick is the rows of sources in the order of their origins.
func pick(sources []held, order []origin) held {
	out := held{column: Column{Type: sources[0].column.Type}, lists: lists{typ: sources[0].lists.typ}, isList: sources[0].isList}
	for _, o := range order {
		if out.isList {
			out.lists.rows = append(out.lists.rows, sources[o.source].lists.rows[o.row])
		} else {
			out.column.Values = append(out.column.Values, sources[o.source].column.Values[o.row])
		}
	}
	return out
}

func (l *MergeLaw) draw(r *rand.Rand, t column.Type, n int) held {
	if l.Lists {
		return held{lists: drawLists(r, t, n), isList: true}
	}
	return held{column: DrawColumn(r, t, n)}
}

func (l *MergeLaw) spec(t column.Type, rows int, groups, pages []uint32) index.Spec {
	s := index.Spec{Columns: []column.Path{Path(t)}, Params: l.Params, Rows: uint32(rows), RowGroups: groups, Pages: pages}
	if l.Lists {
		s.Columns = []column.Path{ListPath(t)}
	}
	return s
}

// built is an artifact with its rows and granules.
type built struct {
	held
	Artifact
	groups, pages []uint32
	merged        bool
}

func (l *MergeLaw) build(t *testing.T, r *rand.Rand, typ column.Type, h held, groups, pages []uint32) built {
	t.Helper()
	spec := l.spec(typ, h.len(), groups, pages)
	var a Artifact
	var err error
	if h.isList {
		a, err = h.lists.build(r, l.Kind, spec)
	} else {
		a, err = TryBuild(r, l.Kind, &h.column, spec, index.Budget{TempDir: l.temp})
	}
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	return built{held: h, Artifact: a, groups: groups, pages: pages}
}

// SourceOf is an artifact to merge.
func SourceOf(a *Artifact, rows uint32) index.Source {
	return index.Source{Root: a.Root, Rows: rows, Body: bytes.NewReader(a.Body), Size: int64(len(a.Body))}
}

// The maps of the law.
const (
	mapWhole    = "whole sources in order"
	mapDeletes  = "sources that lost rows"
	mapPieces   = "stretches that moved apart"
	mapShuffled = "rows in another order"
)

// Run runs the law.
func (l *MergeLaw) Run(t *testing.T) {
	r := Rand(t)
	l.merged, l.declined, l.temp = map[string]int{}, map[string]int{}, t.TempDir()
	for i := range Rounds(l.Rounds) {
		l.round(t, r, Types[i%len(Types)])
		if t.Failed() {
			return
		}
	}
	for _, what := range []string{mapWhole, mapDeletes, mapPieces, mapShuffled} {
		if l.merged[what] == 0 && !slices.Contains(l.Declines, what) {
			t.Errorf("%s: never merged, declined %d times", what, l.declined[what])
		}
	}
}

func (l *MergeLaw) round(t *testing.T, r *rand.Rand, typ column.Type) {
	var sources []built
	for range 1 + r.IntN(4) {
		n := []int{0, 1, 2, 63, 64, 65, 100, 400}[r.IntN(8)]
		groups, pages := Cuts(r, n)
		if b := l.build(t, r, typ, l.draw(r, typ, n), groups, pages); b.Root != nil {
			sources = append(sources, b)
		}
	}
	if len(sources) == 0 {
		return
	}
	for _, what := range []string{mapWhole, mapDeletes, mapPieces, mapShuffled} {
		out, ok := l.merge(t, r, typ, sources, what)
		if t.Failed() {
			t.Logf("%s of %d sources of %s", what, len(sources), typ)
			return
		}
		if !ok || len(sources) < 2 {
			continue
		}
		// Merged artifacts are sources like any others, in any order.
		again := append([]built{out}, sources[r.IntN(len(sources))])
		r.Shuffle(2, func(i, j int) { again[i], again[j] = again[j], again[i] })
		l.merge(t, r, typ, again, what)
		if t.Failed() {
			t.Logf("%s, of a merged artifact", what)
			return
		}
	}
}

// origins draws where the new rows come from.
func origins(r *rand.Rand, sources []built, what string) []origin {
	var out []origin
	share := r.Float64()
	if r.IntN(2) == 0 {
		share = 0.95
	}
	for s := range sources {
		gone := rowset.Range{}
		if n := sources[s].len(); n > 0 && r.IntN(3) == 0 {
			gone.Start = uint32(r.IntN(n))
			gone.End = gone.Start + uint32(r.IntN(n-int(gone.Start)+1))
		}
		for i := range sources[s].len() {
			if what == mapWhole || what == mapShuffled || r.Float64() < share && !(uint32(i) >= gone.Start && uint32(i) < gone.End) {
				out = append(out, origin{uint32(s), uint32(i)})
			}
		}
	}
	switch {
	case what == mapShuffled && len(out) > 0:
		r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	case what == mapPieces && len(out) > 1:
		a, b := r.IntN(len(out)), r.IntN(len(out))
		a, b = min(a, b), max(a, b)
		out = slices.Concat(out[b:], out[:a], out[a:b])
	}
	return out
}

func (l *MergeLaw) merge(t *testing.T, r *rand.Rand, typ column.Type, sources []built, what string) (out built, ok bool) {
	t.Helper()
	list, rows, from := make([]index.Source, len(sources)), make([]uint32, len(sources)), make([]held, len(sources))
	for i := range sources {
		rows[i], from[i] = uint32(sources[i].len()), sources[i].held
		list[i] = SourceOf(&sources[i].Artifact, rows[i])
	}
	order := origins(r, sources, what)
	source, old := make([]uint32, len(order)), make([]uint32, len(order))
	for i, o := range order {
		source[i], old[i] = o.source, o.row
	}
	m, err := index.Originating(rows, source, old)
	if err != nil {
		t.Fatal(err)
	}
	groups, pages := Cuts(r, len(order))
	if what == mapWhole {
		groups, pages = concatenated(sources)
	}
	spec, body := l.spec(typ, len(order), groups, pages), &Body{}
	root, reason, err := l.Kind.Merge(spec, list, m, index.Budget{TempDir: l.temp}, body)
	if err != nil {
		t.Fatalf("merge: %v", err)
	}
	if left, _ := os.ReadDir(l.temp); len(left) > 0 {
		t.Fatalf("%d temporary files left", len(left))
	}
	if root == nil {
		if reason == "" {
			t.Fatal("nothing merged and no reason")
		}
		l.declined[what]++
		return out, false
	}
	l.merged[what]++
	out = built{held: pick(from, order), Artifact: Artifact{Root: root, Body: body.Bytes()}, groups: groups, pages: pages, merged: true}
	fresh := !slices.ContainsFunc(sources, func(b built) bool { return b.merged })
	if what == mapWhole && fresh && !l.Pieces || l.Same {
		own := l.build(t, r, typ, out.held, groups, pages)
		if own.Root != nil && (!bytes.Equal(own.Root, root) || !bytes.Equal(own.Body, out.Body)) {
			t.Errorf("merged to %d + %d bytes, built from the rows to %d + %d", len(root), body.Len(), len(own.Root), len(own.Body))
		}
	}
	if bad := l.answers(r, typ, &out, 40); bad != "" {
		t.Error(bad)
	}
	return out, true
}

// concatenated is the granules of sources one after the other.
func concatenated(sources []built) (groups, pages []uint32) {
	at := uint32(0)
	for i := range sources {
		for _, g := range sources[i].groups {
			groups = append(groups, at+g)
		}
		for _, p := range sources[i].pages {
			pages = append(pages, at+p)
		}
		at += uint32(sources[i].len())
	}
	return groups, pages
}

// answers asks an artifact n leaves and tells where it is wrong, "" if nowhere.
func (l *MergeLaw) answers(r *rand.Rand, typ column.Type, b *built, n int) string {
	reader, err := l.Kind.Open(b.Root, uint32(b.len()))
	if err != nil {
		return fmt.Sprintf("open: %v", err)
	}
	present := Promotions(typ)
	for range n {
		as := present[r.IntN(len(present))]
		if !b.isList {
			leaf := DrawLeaf(r, &b.column, as)
			v, _, err := Run(reader.Probe(leaf), b.Body)
			if err != nil {
				return fmt.Sprintf("%v\n%s", err, Describe(leaf))
			}
			if bad := Wrong(leaf, &b.column, v); bad != "" {
				return bad + "\n" + Describe(leaf)
			}
			continue
		}
		leaf := &predicate.Leaf{
			Column: predicate.Column{Path: ListPath(as)}, Op: predicate.Contains, Negated: r.IntN(2) == 0,
			Dialect: predicate.Dialect(r.IntN(2)), Values: []column.Value{b.lists.literal(r, as)},
		}
		v, _, err := Run(reader.Probe(leaf), b.Body)
		if err != nil {
			return fmt.Sprintf("%v\n%s", err, Describe(leaf))
		}
		for i, row := range b.lists.rows {
			if passes := b.lists.contains(leaf, row); passes && !v.May.Contains(uint32(i)) || !passes && v.Must.Contains(uint32(i)) {
				return fmt.Sprintf("row %d passes %v, must %s, may %s\n%s", i, passes, v.Must, v.May, Describe(leaf))
			}
		}
	}
	return ""
}

// HostileMerge merges damaged sources: bodies cut short and bits flipped must end in a fault or leave every answer right, and damaged
// roots must not panic.
func (l *MergeLaw) HostileMerge(t *testing.T) {
	r := Rand(t)
	l.temp = t.TempDir()
	typ := []column.Type{column.Of(column.Long), column.Of(column.String), column.Of(column.Double)}[r.IntN(3)]
	var sources []built
	for len(sources) < 2 {
		n := 150 + r.IntN(100)
		groups, pages := Cuts(r, n)
		if b := l.build(t, r, typ, l.draw(r, typ, n), groups, pages); b.Root != nil {
			sources = append(sources, b)
		}
	}
	groups, pages := concatenated(sources)
	rows := []uint32{uint32(sources[0].len()), uint32(sources[1].len())}
	m, err := index.Concatenated(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := l.spec(typ, int(m.Rows()), groups, pages)
	whole := make([]origin, 0, m.Rows())
	for s := range rows {
		for i := range rows[s] {
			whole = append(whole, origin{uint32(s), i})
		}
	}
	now := pick([]held{sources[0].held, sources[1].held}, whole)
	try := func(root, data []byte) (built, error) {
		bad := Artifact{Root: root, Body: data}
		body := &Body{}
		out, _, err := l.Kind.Merge(spec, []index.Source{SourceOf(&sources[0].Artifact, rows[0]), SourceOf(&bad, rows[1])}, m, index.Budget{TempDir: l.temp}, body)
		return built{held: now, Artifact: Artifact{Root: out, Body: body.Bytes()}}, err
	}
	good := sources[1].Artifact
	for range min(Rounds(300), 8*len(good.Body)) {
		data := bytes.Clone(good.Body)
		data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		out, err := try(good.Root, data)
		if err != nil && !fault.Is(err, fault.Corrupt) {
			t.Fatalf("a bit of the body flipped: %v", err)
		}
		if err == nil && out.Root != nil {
			if bad := l.answers(r, typ, &out, 10); bad != "" {
				t.Fatalf("a bit of the body flipped: %s", bad)
			}
		}
	}
	if n := len(good.Body); n > 0 {
		if _, err := try(good.Root, good.Body[:r.IntN(n)]); !fault.Is(err, fault.Corrupt) {
			t.Errorf("body cut short: %v", err)
		}
	}
	for range Rounds(300) {
		root := bytes.Clone(good.Root)
		root[r.IntN(len(root))] ^= 1 << r.IntN(8)
		if _, err := try(root, good.Body); err != nil && !fault.Is(err, fault.Corrupt) && !fault.Is(err, fault.Unsupported) {
			t.Fatalf("a bit of the root flipped: %v", err)
		}
	}
	for n := range good.Root {
		if _, err := try(good.Root[:n:n], good.Body); !fault.Is(err, fault.Corrupt) {
			t.Fatalf("root cut to %d of %d bytes: %v", n, len(good.Root), err)
		}
	}
}
