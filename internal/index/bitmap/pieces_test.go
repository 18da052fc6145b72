package bitmap

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/rowset"
)

// heldRows is a row set and its bytes.
type heldRows struct {
	size  uint32
	rows  []uint32
	bytes []byte
}

func drawHeld(r *rand.Rand) heldRows {
	h := heldRows{size: []uint32{1, 100, 65536, 65537, 200_000}[r.IntN(5)]}
	gap := []int{1, 2, 3, 50, 4000}[r.IntN(5)]
	var w index.RowsWriter
	for row := uint32(r.IntN(gap)); row < h.size; row += 1 + uint32(r.IntN(gap)) {
		h.rows = append(h.rows, row)
		w.Add(rowset.Range{Start: row, End: row + 1})
	}
	var out bytescan.Writer
	w.Append(&out)
	h.bytes = out.Buf
	return h
}

// drawPlaces cuts sources into stretches, of which some go, and puts the others one after the other, now and then in another order.
func drawPlaces(t *testing.T, r *rand.Rand, sources []heldRows) *index.OrdinalMap {
	t.Helper()
	var rows []uint32
	var places []index.Stretch
	for i, s := range sources {
		rows = append(rows, s.size)
		cuts := []uint32{0, s.size}
		for range r.IntN(3) * r.IntN(2) {
			at := uint32(r.IntN(int(s.size)))
			if r.IntN(2) == 0 { // near ends of chunks
				at = min(s.size, at>>16<<16+uint32(r.IntN(3)))
			}
			cuts = append(cuts, at)
		}
		slices.Sort(cuts)
		for k := range cuts[1:] {
			if cuts[k] < cuts[k+1] && (k == 0 || r.IntN(3) > 0) {
				places = append(places, index.Stretch{Source: i, Old: rowset.Range{Start: cuts[k], End: cuts[k+1]}})
			}
		}
	}
	if r.IntN(3) == 0 {
		r.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	}
	m, to := index.NewOrdinalMap(rows), uint32(0)
	for _, x := range places {
		m.Move(x.Source, x.Old, to)
		to += x.Old.Len()
	}
	if err := m.Seal(to); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPiecesAreWhatIsMovedRowByRow: row sets that are merged as pieces, and merged again, hold the rows that went through the map.
func TestPiecesAreWhatIsMovedRowByRow(t *testing.T) {
	r := indextest.Rand(t)
	pieces, plain := 0, 0
	var w setWriter
	for range indextest.Rounds(40) {
		sources := []heldRows{drawHeld(r), drawHeld(r), drawHeld(r)}
		for range 3 {
			m := drawPlaces(t, r, sources)
			merged := heldRows{size: m.Rows()}
			for i, s := range sources {
				for _, row := range s.rows {
					if to := m.To(i, row); to != index.Gone {
						merged.rows = append(merged.rows, to)
					}
				}
			}
			slices.Sort(merged.rows)
			w.reset()
			least := []int{1, 128, 5000}[r.IntN(3)]
			for _, along := range m.Stretches() {
				s := sources[along[0].Source]
				if len(s.rows) == 0 || len(s.rows) == int(s.size) {
					for _, x := range along {
						if len(s.rows) > 0 {
							w.add(rowset.Range{Start: x.To, End: x.To + x.Old.Len()})
						}
					}
					continue
				}
				if err := w.splice(s.bytes, s.size, uint32(len(s.rows)), along, least); err != nil {
					t.Fatal(err)
				}
			}
			if w.count != int64(len(merged.rows)) {
				t.Fatalf("counted %d of %d rows", w.count, len(merged.rows))
			}
			if w.inPieces() {
				pieces++
			} else {
				plain++
			}
			var out bytescan.Writer
			out.Buf = slices.Clone(w.bytes(&out))
			merged.bytes = out.Buf
			found := index.NewRows(merged.size)
			err := rowSet{count: uint32(len(merged.rows))}.visit(merged.bytes, merged.size, func(x rowset.Range) { found.Add(x) })
			if err != nil || !found.Set().Equal(rowset.FromRows(merged.size, merged.rows)) {
				t.Fatalf("%d rows of %d in pieces of at least %d bytes: %v", len(merged.rows), merged.size, least, err)
			}
			if merged.size == 0 {
				break
			}
			sources = []heldRows{merged, drawHeld(r), drawHeld(r)}
			r.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
		}
	}
	if pieces == 0 || plain == 0 {
		t.Errorf("%d row sets in pieces, %d that are not", pieces, plain)
	}
}

// TestPiecesUpToTheLastOrdinal copies, splices and reads rows up to the greatest ordinal there is.
func TestPiecesUpToTheLastOrdinal(t *testing.T) {
	const end = 1<<32 - 1
	for _, size := range []uint32{1, 200, 65536, 65537, 3*65536 - 1} {
		for _, least := range []int{1, maxRowSet} {
			rows, want, out := slices.Compact([]uint32{0, size / 2, size - 1}), []uint32{0}, bytescan.Writer{}
			var plain index.RowsWriter
			for _, row := range rows {
				plain.Add(rowset.Range{Start: row, End: row + 1})
				want = append(want, end-size+row)
			}
			plain.Append(&out)
			var w setWriter
			w.add(rowset.Range{End: 1})
			err := w.splice(out.Buf, size, uint32(len(rows)), []index.Stretch{{Old: rowset.Range{End: size}, To: end - size}}, least)
			for range 2 { // what was merged is merged again
				if err != nil || w.inPieces() != (least == 1) {
					t.Fatalf("in pieces %v, %v", w.inPieces(), err)
				}
				var b bytescan.Writer
				b.Buf = slices.Clone(w.bytes(&b))
				var got []uint32
				err = rowSet{count: uint32(len(want))}.visit(b.Buf, end, func(x rowset.Range) {
					for row := x.Start; row < x.End; row++ {
						got = append(got, row)
					}
				})
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%d rows in pieces of at least %d bytes: %d, want %d, %v", size, least, got, want, err)
				}
				w.reset()
				err = w.splice(b.Buf, end, uint32(len(want)), []index.Stretch{{Old: rowset.Range{End: end}}}, least)
			}
		}
	}
}

// pieced is the sample merged with itself, every row set copied.
func pieced(t testing.TB, k Kind) (indextest.Artifact, uint32) {
	t.Helper()
	a, rows := sample(t, k)
	m, err := index.Concatenated([]uint32{rows, rows}, nil)
	if err != nil {
		t.Fatal(err)
	}
	body := &indextest.Body{}
	k.copied = 1
	spec := index.Spec{Columns: []column.Path{indextest.Path(double)}, Rows: 2 * rows}
	root, _, err := k.Merge(spec, []index.Source{indextest.SourceOf(&a, rows), indextest.SourceOf(&a, rows)}, m, index.Budget{}, body)
	if err != nil {
		t.Fatal(err)
	}
	return indextest.Artifact{Root: root, Body: body.Bytes()}, 2 * rows
}

func TestGoldenPieces(t *testing.T) {
	a, _ := pieced(t, Kind{})
	indextest.Golden(t, "pieces.v2", `
The artifact of inline.v1 merged with itself, row sets copied: 02 version
a row set: 00 in pieces; from row 00 on, of 09 rows, 09 bytes: that of inline.v1; 00 rows behind these, the same`, a)
}

func TestHostilePieces(t *testing.T) {
	for _, k := range []Kind{{}, paged} {
		a, rows := pieced(t, k)
		indextest.Hostile(t, k, a, double, rows, indextest.Lit(double, 1.5))
	}
}

// TestBrokenPiecesFail: pieces with rows that are not theirs are no row set.
func TestBrokenPiecesFail(t *testing.T) {
	for what, b := range map[string]string{
		"no pieces":                   "\x00",
		"a row behind the piece":      "\x00\x00\x05\x05\x01\x00\x01\x05\x00\x00\x05\x05\x01\x00\x01\x00\x00",
		"a base past the end":         "\x00\x64\x06\x05\x01\x00\x01\x05\x00",
		"rows past the end":           "\x00\x60\x06\x05\x01\x00\x01\x05\x00",
		"a row behind the last piece": "\x00\x60\x04\x05\x01\x00\x01\x05\x00",
		"a base that wraps":           "\x00\x02\x06\x05\x01\x00\x01\x05\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x06\x05\x01\x00\x01\x05\x00",
		"rows that wrap":              "\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x05\x01\x00\x01\x05\x00",
		"pieces in a piece":           "\x00\x00\x10\x09\x00\x00\x06\x05\x01\x00\x01\x05\x00",
		"fewer bytes than stated":     "\x00\x00\x06\x06\x01\x00\x01\x05\x00",
	} {
		n := uint32(1)
		if what == "a row behind the piece" || what == "a base that wraps" {
			n = 2
		}
		err := rowSet{count: n}.visit([]byte(b), 100, func(x rowset.Range) {
			if x.End > 100 {
				t.Errorf("%s: rows %v", what, x)
			}
		})
		if !fault.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzPieces reads arbitrary row sets, in pieces or not: what they show ascends.
func FuzzPieces(f *testing.F) {
	f.Add([]byte("\x00\x00\x06\x05\x01\x00\x01\x05\x00\x09\x01\x05\x01\x00\x01\x00\x00"), uint32(100))
	f.Add([]byte("\x01\x00\x02\x05\x00\x05\x01"), uint32(100))
	f.Fuzz(func(t *testing.T, b []byte, size uint32) {
		size %= 1 << 22
		n, end := uint32(0), uint32(0)
		show := func(x rowset.Range) {
			if x.Start < end || x.End <= x.Start || x.End > size {
				t.Errorf("rows %v after %d of %d", x, end, size)
			}
			n, end = n+x.Len(), x.End
		}
		_ = rowSet{}.visit(b, size, show)
		want := n
		n, end = 0, 0
		if err := (rowSet{count: want}).visit(b, size, show); err == nil && n != want {
			t.Errorf("%d rows, then %d", want, n)
		}
	})
}
