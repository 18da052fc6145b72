package ngram

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/rowset"
)

// listed is a posting and its rows.
type listed struct {
	size  uint32
	rows  []uint32
	bytes []byte
}

func drawPosting(r *rand.Rand) listed {
	l := listed{size: []uint32{1, 100, chunkRows, chunkRows + 1, 3 * chunkRows, 5*chunkRows - 7}[r.IntN(6)]}
	var p posting
	gap := []int{1, 2, 9, 300, 5000, 90_000}[r.IntN(6)]
	for row := uint32(r.IntN(gap)); row < l.size; row += 1 + uint32(r.IntN(gap)) {
		p.add(row)
		l.rows = append(l.rows, row)
		if r.IntN(20_000) == 0 {
			gap = 1 + r.IntN(5000)
		}
	}
	l.bytes = slices.Clone(p.finish())
	return l
}

// drawMoves cuts sources into pieces, near ends of chunks or anywhere, of which some go, and sends the others to new places, now and then in
// another order.
func drawMoves(t *testing.T, r *rand.Rand, sources []listed) *index.OrdinalMap {
	t.Helper()
	var rows []uint32
	var pieces []index.Stretch
	for i, s := range sources {
		rows = append(rows, s.size)
		cuts := []uint32{0, s.size}
		for range r.IntN(4) {
			at := uint32(r.IntN(int(s.size)))
			if r.IntN(2) == 0 {
				at = min(s.size, at/chunkRows*chunkRows+uint32(r.IntN(3)))
			}
			cuts = append(cuts, at)
		}
		slices.Sort(cuts)
		whole := r.IntN(2) == 0
		for k := range cuts[1:] {
			if cuts[k] < cuts[k+1] && (whole || r.IntN(4) > 0) {
				pieces = append(pieces, index.Stretch{Source: i, Old: rowset.Range{Start: cuts[k], End: cuts[k+1]}})
			}
		}
	}
	if r.IntN(3) == 0 {
		r.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	}
	m, to := index.NewOrdinalMap(rows), uint32(0)
	for _, x := range pieces {
		m.Move(x.Source, x.Old, to)
		to += x.Old.Len()
	}
	if err := m.Seal(to); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCopiesAreWhatIsMovedRowByRow: postings that are merged as bytes, and merged again, hold the rows that went through the map.
func TestCopiesAreWhatIsMovedRowByRow(t *testing.T) {
	r := it.Rand(t)
	seamed, seamless := 0, 0
	for range it.Rounds(30) {
		sources := []listed{drawPosting(r), drawPosting(r), drawPosting(r)}
		for range 3 {
			m := drawMoves(t, r, sources)
			merged := listed{size: m.Rows()}
			for i, s := range sources {
				for _, row := range s.rows {
					if to := m.To(i, row); to != index.Gone {
						merged.rows = append(merged.rows, to)
					}
				}
			}
			slices.Sort(merged.rows)
			var p posting
			least := []int{1, 2, 128, 5000}[r.IntN(4)]
			for _, along := range m.Stretches() {
				s := sources[along[0].Source]
				c := copier{along: along, size: s.size, least: least, out: &p}
				if err := c.copy(s.bytes, uint32(len(s.rows))); err != nil {
					t.Fatal(err)
				}
			}
			merged.bytes = slices.Clone(p.finish())
			if p.seamed {
				seamed++
			} else {
				seamless++
			}
			set, err := readPosting(merged.bytes, merged.size, uint32(len(merged.rows)))
			if err != nil || int(p.rows) != len(merged.rows) || !set.Equal(rowset.FromRows(merged.size, merged.rows)) {
				t.Fatalf("%d rows of %d in chunks of at least %d: %v", len(merged.rows), merged.size, least, err)
			}
			if merged.size == 0 {
				break
			}
			sources = []listed{merged, drawPosting(r), drawPosting(r)}
			r.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
		}
	}
	if seamed == 0 || seamless == 0 {
		t.Errorf("%d postings with seams, %d without", seamed, seamless)
	}
}

// TestCopiesUpToTheLastOrdinal copies, moves and reads rows up to the greatest ordinal there is.
func TestCopiesUpToTheLastOrdinal(t *testing.T) {
	const end = 1<<32 - 1
	for _, size := range []uint32{1, 200, chunkRows, chunkRows + 1, 3*chunkRows - 1} {
		for _, least := range []int{1, 1 << 20} {
			var p posting
			rows := []uint32{0, size / 2, size - 1}
			rows = slices.Compact(rows)
			for _, row := range rows {
				p.add(row)
			}
			b, want := slices.Clone(p.finish()), []uint32{0}
			for twice := range 2 { // what was copied is copied again
				p.reset()
				c := copier{along: []index.Stretch{{Old: rowset.Range{End: size}, To: end - size}}, size: size, least: least, out: &p}
				if twice == 0 {
					p.add(0)
				} else {
					c.size, c.along[0] = end, index.Stretch{Old: rowset.Range{End: end}}
				}
				if err := c.copy(b, uint32(len(rows))); err != nil {
					t.Fatal(err)
				}
				if twice == 0 {
					for i := range rows {
						want = append(want, end-size+rows[i])
					}
					rows = want
				}
				b = slices.Clone(p.finish())
				var got []uint32
				err := eachRow(b, end, uint32(len(want)), func(x rowset.Range) bool {
					for row := x.Start; row < x.End; row++ {
						got = append(got, row)
					}
					return true
				})
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("in chunks of at least %d: rows %d, want %d, %v", least, got, want, err)
				}
			}
		}
	}
}

// TestMergesOfMergesKeepTheLaw merges artifacts, copying whatever stays together, and asks what came of it.
func TestMergesOfMergesKeepTheLaw(t *testing.T) {
	r := it.Rand(t)
	k := Kind{sizes{copied: 1}}
	for range it.Rounds(20) {
		c := drawTexts(r, 1+r.IntN(300))
		a := it.Build(t, r, k, &c, it.SpecOf(r, str, len(c.Values)), index.Budget{})
		for range 3 {
			other := drawTexts(r, 1+r.IntN(300))
			b := it.Build(t, r, k, &other, it.SpecOf(r, str, len(other.Values)), index.Budget{})
			a, c = mergeTwo(t, r, k, a, b, c, other)
			reader, err := k.Open(a.Root, uint32(len(c.Values)))
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if len(c.Values) == 0 {
					break
				}
				leaf := drawLeaf(r, &c)
				v, _, err := it.Run(reader.Probe(leaf), a.Body)
				if err != nil {
					t.Fatal(err)
				}
				if bad := it.Wrong(leaf, &c, v); bad != "" {
					t.Fatalf("%s\n%s", bad, it.Describe(leaf))
				}
			}
		}
	}
}

// mergeTwo merges the artifacts of two columns, of which some rows go or are sent elsewhere.
func mergeTwo(t *testing.T, r *rand.Rand, k Kind, a, b it.Artifact, one, two it.Column) (it.Artifact, it.Column) {
	t.Helper()
	columns := []it.Column{one, two}
	rows := []uint32{uint32(len(one.Values)), uint32(len(two.Values))}
	var source, old []uint32
	now := it.Column{Type: str}
	for i, c := range columns {
		gone := r.IntN(len(c.Values) + 1)
		for row, v := range c.Values {
			if row >= gone/8 && row != gone {
				source, old, now.Values = append(source, uint32(i)), append(old, uint32(row)), append(now.Values, v)
			}
		}
	}
	if r.IntN(3) == 0 {
		at := r.IntN(len(source) + 1)
		turn := func(x []uint32) []uint32 { return slices.Concat(x[at:], x[:at]) }
		source, old, now.Values = turn(source), turn(old), slices.Concat(now.Values[at:], now.Values[:at])
	}
	m, err := index.Originating(rows, source, old)
	if err != nil {
		t.Fatal(err)
	}
	body := &it.Body{}
	root, reason, err := k.Merge(it.SpecOf(r, str, len(source)), []index.Source{it.SourceOf(&a, rows[0]), it.SourceOf(&b, rows[1])}, m, index.Budget{}, body)
	if err != nil || root == nil {
		t.Fatal(reason, err)
	}
	return it.Artifact{Root: root, Body: body.Bytes()}, now
}

// seamedSample is the sample twice, merged as bytes.
func seamedSample(t testing.TB) (it.Artifact, uint32) {
	t.Helper()
	a, rows := sample(t, Kind{})
	m, err := index.Concatenated([]uint32{rows, rows}, nil)
	if err != nil {
		t.Fatal(err)
	}
	body := &it.Body{}
	spec := index.Spec{Columns: []column.Path{it.Path(str)}, Rows: 2 * rows}
	root, _, err := Kind{sizes{copied: 1}}.Merge(spec, []index.Source{it.SourceOf(&a, rows), it.SourceOf(&a, rows)}, m, index.Budget{}, body)
	if err != nil {
		t.Fatal(err)
	}
	return it.Artifact{Root: root, Body: body.Bytes()}, 2 * rows
}

func TestGoldenSeams(t *testing.T) {
	a, _ := seamedSample(t)
	it.Golden(t, "seams.v2", `
The artifact of inside.v1 merged with itself, chunks copied: 02 version
every posting is that of inside.v1, a seam at row 14, 9c8008 = (65,536 + 14) << 1, and the same chunks again`, a)
}

func TestHostileSeams(t *testing.T) {
	a, rows := seamedSample(t)
	it.Hostile(t, Kind{}, a, str, rows, it.Lit(str, "fig"))
}

// TestPostingsOutOfOrderFail: chunks, seams and rows that do not ascend are no posting, whether it is read, copied or moved.
func TestPostingsOutOfOrderFail(t *testing.T) {
	seam := "\x80\x80\x08" // to the base before
	for what, b := range map[string]string{
		"a seam back":        "\x00\x00\x08\x05" + seam + "\x00\x00\x08\x04",
		"the same row twice": "\x00\x00\x08\x05" + "\x8a\x80\x08" + "\x00\x00\x08\x00",
		"an odd seam":        "\x81\x80\x08" + "\x00\x00\x08\x05",
		"a far seam":         "\x80\x80\x80\x80\x80\x80\x01" + "\x00\x00\x08\x05",
		"a seam at the end":  "\x00\x00\x08\x05" + "\x9c\x80\x08",
		"a late chunk":       "\x00\x00\x08\x05" + "\xfe\xff\x07\x00\x08\x00",
		"wide gaps":          "\x00\x00\x11\x00\x00\x00",
		"no gaps":            "\x00\x05",
		"rows past the end":  "\x00\x00\x08\x78",
	} {
		n := uint32(2)
		if what == "an odd seam" || what == "a far seam" || what == "wide gaps" || what == "rows past the end" {
			n = 1
		}
		if _, err := readPosting([]byte(b), 100, n); !fault.Is(err, fault.Corrupt) {
			t.Errorf("%s: read: %v", what, err)
		}
		var p posting
		c := copier{along: []index.Stretch{{Old: rowset.Range{Start: 1, End: 100}}}, size: 100, least: 1, out: &p}
		if err := c.copy([]byte(b), n); !fault.Is(err, fault.Corrupt) {
			t.Errorf("%s: copied: %v", what, err)
		}
	}
	if a, rows := seamedSample(t); rows > 0 && bytes.Equal(a.Root[:1], []byte{seamless}) {
		t.Error("seams in a version without")
	}
}

// TestDamageBehindTheFirstChunkFails: chunks that are passed over at a glance are looked at as far as their ends.
func TestDamageBehindTheFirstChunkFails(t *testing.T) {
	first := "\x00\x00\x08\x05"
	for what, b := range map[string]string{
		"wide gaps":     "\x00\x00\x11\x00\x00\x00",
		"too many rows": "\x00\x80\x80\x04" + string(make([]byte, 513)),
		"no gaps":       "\x00\x05",
		"half the gaps": "\x00\x01\x10\x05\x00\x07",
		"half the bits": "\x01" + string(make([]byte, chunkBitmap/2)),
		"no head":       "\x80",
		"far too far":   "\xfe\xff\x07\x00\x08\x00",
		"a seam back":   "\x80\x80\x08\x00\x00\x08\x06",
		"a seam back to a chunk that was passed over": "\x00\x00\x08\x05\x80\x80\x10\x00\x00\x08\x06",
	} {
		for n := range uint32(chunkRows + 3) {
			if n > 10 && n < chunkRows-3 {
				continue
			}
			var p posting
			c := copier{along: []index.Stretch{{Old: rowset.Range{End: 4 * chunkRows}}}, size: 4 * chunkRows, least: 1, out: &p}
			if err := c.copy([]byte(first+b), n); !fault.Is(err, fault.Corrupt) {
				t.Errorf("%s: %d rows copied: %v", what, n, err)
			}
		}
	}
}

// FuzzCopy copies arbitrary bytes: of a posting, the rows that lie in a stretch must be read back, in their new places.
func FuzzCopy(f *testing.F) {
	var p posting
	for row := uint32(0); row < 400_000; row += 1 + row/4000 {
		p.add(row)
	}
	f.Add(p.finish(), uint32(400_000), uint32(70_000), uint32(390_000), uint32(5), uint8(0))
	p.reset()
	p.add(70_000)
	p.copy(90_001, &run{bytes: []byte("\x01\x10\x05\x00\x07\x00"), span: 1, rows: 2})
	f.Add(p.finish(), uint32(200_000), uint32(0), uint32(200_000), uint32(1<<16), uint8(200))
	f.Fuzz(func(t *testing.T, b []byte, size, from, end, to uint32, least uint8) {
		size %= 1 << 22
		end, to = min(end, size), to%(1<<20)
		if from >= end {
			t.Skip()
		}
		n, want := uint32(0), []uint32(nil)
		_ = eachRow(b, size, math.MaxUint32, func(x rowset.Range) bool { n += x.Len(); return true })
		err := eachRow(b, size, n, func(x rowset.Range) bool {
			for row := max(x.Start, from); row < min(x.End, end); row++ {
				want = append(want, row-from+to)
			}
			return true
		})
		var out posting
		c := copier{along: []index.Stretch{{Old: rowset.Range{Start: from, End: end}, To: to}}, size: size, least: 1 + int(least), out: &out}
		if got := c.copy(b, n); err != nil {
			return // what is copied is not looked at
		} else if got != nil {
			t.Fatal(got)
		}
		set, err := readPosting(out.finish(), to+end-from, uint32(len(want)))
		if err != nil || out.rows != uint32(len(want)) || !set.Equal(rowset.FromRows(to+end-from, want)) {
			t.Errorf("%d rows copied, want %d: %v", out.rows, len(want), err)
		}
	})
}
