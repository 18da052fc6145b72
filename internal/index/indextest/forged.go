package indextest

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
)

// ForgedMerge merges honest artifacts with ones whose units break their format under checksums that are right, and what came of it again.
// It fails on a panic, on a fault that does not say "corrupt", and on a wrong answer about a row of an honest artifact: what is wrong about
// the rows of one file must not spread to those of another.
func (l *MergeLaw) ForgedMerge(t *testing.T, types ...column.Type) {
	r := Rand(t)
	l.temp = t.TempDir()
	tried, merged := 0, 0
	for i := range Rounds(l.Rounds) {
		typ := types[i%len(types)]
		var drawn [2]doubted
		for k := range drawn {
			n := 1 + r.IntN(80)
			groups, pages := Cuts(r, n)
			drawn[k] = doubted{l.build(t, r, typ, l.draw(r, typ, n), groups, pages), make([]bool, n)}
		}
		honest, bad := drawn[0], drawn[1]
		units := unitsOf(bad.Artifact)
		if honest.Root == nil || bad.Root == nil || len(units) == 0 {
			continue
		}
		for k := range bad.doubt {
			bad.doubt[k] = true
		}
		good := bad.Artifact
		for range 20 {
			bad.Artifact = forge(r, good, units)
			tried++
			out, ok := l.spread(t, r, typ, honest, bad)
			if ok && !t.Failed() {
				merged++
				l.spread(t, r, typ, out, honest)
			}
			if t.Failed() {
				return
			}
		}
	}
	if tried == 0 || merged == 0 {
		t.Errorf("%d artifacts forged, %d of them merged", tried, merged)
	}
}

// doubted is an artifact and of which rows it may say anything.
type doubted struct {
	built
	doubt []bool
}

// spread merges two artifacts, now and then without some rows or in other places, and asks about the rows that are in no doubt.
func (l *MergeLaw) spread(t *testing.T, r *rand.Rand, typ column.Type, a, b doubted) (out doubted, ok bool) {
	t.Helper()
	sources := []doubted{a, b}
	if r.IntN(2) == 0 {
		slices.Reverse(sources)
	}
	both := []built{sources[0].built, sources[1].built}
	order := origins(r, both, []string{mapWhole, mapWhole, mapDeletes, mapPieces}[r.IntN(4)])
	rows := []uint32{uint32(both[0].len()), uint32(both[1].len())}
	source, old := make([]uint32, len(order)), make([]uint32, len(order))
	for i, o := range order {
		source[i], old[i] = o.source, o.row
		out.doubt = append(out.doubt, sources[o.source].doubt[o.row])
	}
	m, err := index.Originating(rows, source, old)
	if err != nil {
		t.Fatal(err)
	}
	groups, pages := Cuts(r, len(order))
	body := &Body{}
	list := []index.Source{SourceOf(&both[0].Artifact, rows[0]), SourceOf(&both[1].Artifact, rows[1])}
	root, _, err := l.Kind.Merge(l.spec(typ, len(order), groups, pages), list, m, index.Budget{TempDir: l.temp}, body)
	if err != nil && !fault.Is(err, fault.Corrupt) {
		t.Errorf("a forged unit merged: %v", err)
	}
	if root == nil || err != nil {
		return out, false
	}
	out.built = built{
		held: pick([]held{both[0].held, both[1].held}, order), Artifact: Artifact{Root: root, Body: body.Bytes()}, groups: groups, pages: pages, merged: true,
	}
	l.answersHonestly(t, r, typ, &out)
	return out, len(order) > 0
}

// answersHonestly asks an artifact about the rows in no doubt.
func (l *MergeLaw) answersHonestly(t *testing.T, r *rand.Rand, typ column.Type, d *doubted) {
	t.Helper()
	reader, err := l.Kind.Open(d.Root, uint32(d.len()))
	if err != nil {
		if !fault.Is(err, fault.Corrupt) {
			t.Errorf("open: %v", err)
		}
		return
	}
	for range 20 {
		leaf := DrawLeaf(r, &d.column, typ)
		v, _, err := Run(reader.Probe(leaf), d.Body)
		if err != nil {
			if !fault.Is(err, fault.Corrupt) {
				t.Errorf("%v\n%s", err, Describe(leaf))
			}
			continue
		}
		for i, x := range d.column.Values {
			if d.doubt[i] {
				continue
			}
			var at *column.Value
			if x != nil {
				w := Promote(*x, typ)
				at = &w
			}
			if pass := Passes(leaf, at); pass && !v.May.Contains(uint32(i)) || !pass && v.Must.Contains(uint32(i)) {
				t.Errorf("row %d of an honest artifact passes %v, must %s, may %s\n%s", i, pass, v.Must, v.May, Describe(leaf))
				return
			}
		}
	}
}

// unit is bytes of a body and where the root has their checksum.
type unit struct{ from, end, at int }

// unitsOf finds the units whose checksums are in the root.
func unitsOf(a Artifact) (out []unit) {
	at := map[uint32]int{}
	for i := 0; i+4 <= len(a.Root); i++ {
		at[binary.LittleEndian.Uint32(a.Root[i:])] = i
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	for from := range a.Body {
		crc := uint32(0)
		for end := from; end < len(a.Body); end++ {
			crc = crc32.Update(crc, table, a.Body[end:end+1])
			if i, ok := at[crc]; ok {
				out = append(out, unit{from, end + 1, i})
			}
		}
	}
	return out
}

// forge changes some bytes of a unit and sets its checksum.
func forge(r *rand.Rand, a Artifact, units []unit) Artifact {
	out := Artifact{Root: bytes.Clone(a.Root), Body: bytes.Clone(a.Body)}
	u := units[r.IntN(len(units))]
	b := out.Body[u.from:u.end]
	for range 1 + r.IntN(3) {
		if i := r.IntN(len(b)); r.IntN(2) == 0 {
			b[i] ^= 1 << r.IntN(8)
		} else {
			b[i] = byte(r.IntN(256))
		}
	}
	binary.LittleEndian.PutUint32(out.Root[u.at:], bytescan.CRC32C(b))
	return out
}
