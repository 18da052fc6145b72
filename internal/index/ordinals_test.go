package index

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/rowset"
)

// sent is a map written out: per source the new ordinal of every row.
func checkMap(t *testing.T, r *rand.Rand, m *OrdinalMap, sent [][]uint32) {
	t.Helper()
	for s, to := range sent {
		rows := make([]uint32, len(to))
		for old := range rows {
			rows[old] = uint32(old)
		}
		if m.Send(s, rows); !slices.Equal(rows, to) {
			t.Fatalf("rows of source %d are sent to %v, want %v", s, rows, to)
		}
		for old, want := range to {
			if got := m.To(s, uint32(old)); got != want {
				t.Fatalf("row %d of source %d goes to %d, want %d", old, s, got, want)
			}
		}
		for range 20 {
			from := uint32(r.IntN(len(to) + 1))
			end := from + uint32(r.IntN(len(to)+1-int(from)))
			at, kept := from, uint32(0)
			m.Each(s, rowset.Range{Start: from, End: end}, func(old, now rowset.Range) {
				for ; at < old.Start; at++ {
					if to[at] != Gone {
						t.Fatalf("row %d of source %d was left out", at, s)
					}
				}
				for i := range old.Len() {
					if to[old.Start+i] != now.Start+i {
						t.Fatalf("row %d of source %d goes to %d, want %d", old.Start+i, s, now.Start+i, to[old.Start+i])
					}
				}
				if at, kept = old.End, kept+old.Len(); old.Len() != now.Len() || at > end {
					t.Fatalf("%v became %v within [%d, %d)", old, now, from, end)
				}
			})
			for ; at < end; at++ {
				if to[at] != Gone {
					t.Fatalf("row %d of source %d was left out", at, s)
				}
			}
			if got := m.Kept(s, rowset.Range{Start: from, End: end}); got != kept {
				t.Fatalf("%d rows kept, want %d", got, kept)
			}
		}
	}
}

func TestConcatenatedMaps(t *testing.T) {
	r := seeded(t)
	for range 60 {
		var rows []uint32
		var kept []*rowset.Set
		var sent [][]uint32
		next := uint32(0)
		for range 1 + r.IntN(4) {
			n := []uint32{0, 1, 63, 64, 65, 512, 513, 5000}[r.IntN(8)]
			set := rowset.FromRanges(n, drawRanges(r, n))
			if r.IntN(3) == 0 {
				set = nil
			}
			to := make([]uint32, n)
			for i := range to {
				to[i] = Gone
				if set == nil || set.Contains(uint32(i)) {
					to[i], next = next, next+1
				}
			}
			rows, kept, sent = append(rows, n), append(kept, set), append(sent, to)
		}
		m, err := Concatenated(rows, kept)
		if err != nil || m.Rows() != next {
			t.Fatal(err, m.Rows(), next)
		}
		checkMap(t, r, m, sent)
		for s := range rows {
			if !m.Ascending(s) {
				t.Error("a concatenation keeps its order")
			}
		}
	}
}

func TestOriginatingMaps(t *testing.T) {
	r := seeded(t)
	for range 80 {
		var rows, source, old []uint32
		var sent [][]uint32
		for s := range 1 + r.IntN(4) {
			n := []uint32{0, 1, 64, 300, 6000}[r.IntN(5)]
			rows, sent = append(rows, n), append(sent, nil)
			share := r.Float64()
			for i := range n {
				sent[s] = append(sent[s], Gone)
				if r.Float64() < share {
					source, old = append(source, uint32(s)), append(old, i)
				}
			}
		}
		if r.IntN(2) == 0 {
			r.Shuffle(len(old), func(i, j int) { source[i], source[j], old[i], old[j] = source[j], source[i], old[j], old[i] })
		}
		for i := range old {
			sent[source[i]][old[i]] = uint32(i)
		}
		m, err := Originating(rows, source, old)
		if err != nil {
			t.Fatal(err)
		}
		checkMap(t, r, m, sent)
	}
}

func TestMapsThatLoseOrDoubleRowsAreRefused(t *testing.T) {
	for what, made := range map[string]func() (*OrdinalMap, uint32){
		"a gap": func() (*OrdinalMap, uint32) {
			m := NewOrdinalMap([]uint32{4})
			m.Move(0, rowset.Range{End: 2}, 1)
			return m, 3
		},
		"a row twice": func() (*OrdinalMap, uint32) {
			m := NewOrdinalMap([]uint32{4})
			m.Scatter(0, 0, []uint32{1, 1, Gone, 0})
			return m, 3
		},
		"past the end": func() (*OrdinalMap, uint32) {
			m := NewOrdinalMap([]uint32{4})
			m.Move(0, rowset.Range{End: 4}, 1<<32-2)
			return m, 4
		},
		"past the source": func() (*OrdinalMap, uint32) {
			m := NewOrdinalMap([]uint32{4})
			m.Move(0, rowset.Range{Start: 2, End: 6}, 0)
			return m, 4
		},
		"pieces that overlap": func() (*OrdinalMap, uint32) {
			m := NewOrdinalMap([]uint32{4})
			m.Move(0, rowset.Range{End: 3}, 0)
			m.Keep(0, 2, rowset.All(2), 3)
			return m, 5
		},
		"two sources on one row": func() (*OrdinalMap, uint32) {
			m := NewOrdinalMap([]uint32{2, 2})
			m.Move(0, rowset.Range{End: 2}, 0)
			m.Move(1, rowset.Range{End: 2}, 1)
			return m, 3
		},
	} {
		m, rows := made()
		if err := m.Seal(rows); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := Originating([]uint32{2}, []uint32{0, 0}, []uint32{1, 1}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a row that went to two: %v", err)
	}
	if _, err := Originating([]uint32{2}, []uint32{1}, []uint32{0}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a source that does not exist: %v", err)
	}
}

// TestLostRowsStayLost: of two sources one did not keep its null rows. Their count is known after a merge that keeps every row, their places
// are not; where a row of it is gone, not even the count.
func TestLostRowsStayLost(t *testing.T) {
	var set RowsWriter
	set.Add(rowset.Range{Start: 3, End: 5})
	var unit bytescan.Writer
	set.Append(&unit)
	sources := []Source{{Rows: 10}, {Rows: 8, Body: bytes.NewReader(unit.Buf), Size: int64(len(unit.Buf))}}
	of := []Unordered{{Count: 4}, {Count: 2, Unit: Unit{Span: Span{Len: int64(len(unit.Buf))}, CRC: bytescan.CRC32C(unit.Buf)}}}
	all, err := Concatenated([]uint32{10, 8}, nil)
	if err != nil {
		t.Fatal(err)
	}
	merged, reason, err := MergeUnordered("test", sources, all, of)
	if err != nil || reason != "" {
		t.Fatal(reason, err)
	}
	var out bytescan.Writer
	n, err := merged.Write(&out, &counted{}, 18)
	if err != nil || n != 6 {
		t.Fatalf("%d rows, %v", n, err)
	}
	if u := ReadUnordered(bytescan.NewReader("test", out.Buf), 18, 1000); !u.Lost(18) || u.Count != 6 || u.Known(18).Exact() {
		t.Errorf("%+v", u)
	}
	some, err := Concatenated([]uint32{10, 8}, []*rowset.Set{rowset.FromRows(10, []uint32{0, 1, 2}), nil})
	if err != nil {
		t.Fatal(err)
	}
	if _, reason, err = MergeUnordered("test", sources, some, of); err != nil || reason == "" {
		t.Errorf("rows of the source that lost its nulls are gone: %q, %v", reason, err)
	}
}

// counted is a sink that keeps nothing.
type counted struct{ n int64 }

func (c *counted) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func (c *counted) Offset() int64 { return c.n }

// TestRowsGoneBehindTheLastOrdinal: a row that is gone does not follow the greatest ordinal, which it is one above as a number.
func TestRowsGoneBehindTheLastOrdinal(t *testing.T) {
	p := piece{at: rowset.Range{End: 3}, scattered: []uint32{Gone - 2, Gone - 1, Gone}}
	var got []rowset.Range
	p.each(p.at, func(_, to rowset.Range) { got = append(got, to) })
	if want := []rowset.Range{{Start: Gone - 2, End: Gone}}; !slices.Equal(got, want) {
		t.Errorf("rows go to %v, want %v", got, want)
	}
}
