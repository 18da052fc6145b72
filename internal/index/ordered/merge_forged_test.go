package ordered

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// TestForgedRootsDoNotSpread flips every bit of the root of an artifact whose keys go on from page to page, and merges it with an honest one of
// the same keys: the rows of that are found, or nothing is merged.
func TestForgedRootsDoNotSpread(t *testing.T) {
	long := column.Of(column.Long)
	k := Kind{sizes{block: 1, page: 1, runs: 1}}
	spec := func(n int) index.Spec { return index.Spec{Columns: []column.Path{it.Path(long)}, Rows: uint32(n)} }
	honest, other := it.Of(long, 5, 1, 5, 1, 5), it.Of(long, 5, 7, 5, 7, 5)
	r := rand.New(rand.NewPCG(1, 2))
	good, bad := it.Build(t, r, k, &honest, spec(5), index.Budget{}), it.Build(t, r, k, &other, spec(5), index.Budget{})
	m, err := index.Concatenated([]uint32{5, 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	merged := 0
	for bit := range len(bad.Root) * 8 {
		forged := it.Artifact{Root: bytes.Clone(bad.Root), Body: bad.Body}
		forged.Root[bit/8] ^= 1 << (bit % 8)
		body := &it.Body{}
		root, _, err := k.Merge(spec(10), []index.Source{it.SourceOf(&good, 5), it.SourceOf(&forged, 5)}, m, index.Budget{}, body)
		if root == nil || err != nil {
			continue
		}
		merged++
		reader, err := k.Open(root, 10)
		if err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
		for _, key := range []int{1, 5} {
			v, _, err := it.Run(reader.Probe(it.Test(long, predicate.Equal, key)), body.Bytes())
			if err != nil {
				t.Errorf("bit %d: %v", bit, err)
			}
			for i := range uint32(5) {
				if has := i%2 == 0 == (key == 5); has && !v.May.Contains(i) || !has && v.Must.Contains(i) {
					t.Errorf("bit %d: row %d has %d %v, must %s, may %s", bit, i, key, has, v.Must, v.May)
				}
			}
		}
	}
	if merged == 0 {
		t.Error("none was merged")
	}
}

// forgedNumbers is an artifact of numbers that fill writes.
func forgedNumbers(t *testing.T, rows uint32, k Kind, fill func(*writer) error) (from index.Source) {
	t.Helper()
	e, err := index.EncodingOf(column.Of(column.Long))
	if err != nil {
		t.Fatal(err)
	}
	body := &it.Body{}
	w := newWriter(e, rows, k.orDefault(), body)
	if err := fill(w); err != nil {
		t.Fatal(err)
	}
	root, reason, err := w.seal(func(rest *bytescan.Writer) error { return writeUnordered(rest, body, rowset.None(rows)) })
	if err != nil || reason != "" {
		t.Fatal(reason, err)
	}
	return it.SourceOf(&it.Artifact{Root: root, Body: body.Bytes()}, rows)
}

// forged appends a block of numbers 0, 1, … with as many postings.
func (w *writer) forged(postings ...[]uint64) error {
	b := &bytescan.Writer{}
	b.U8(formPostings)
	b.Uvarint(uint64(len(postings)))
	for i := range postings {
		shared := 7
		if i == 0 || i%256 == 0 {
			shared = 0
		}
		b.U8(uint8(shared))
		b.Bytes(binary.BigEndian.AppendUint64(nil, uint64(i))[shared:])
	}
	for _, p := range postings {
		for _, x := range p {
			b.Uvarint(x)
		}
	}
	u, err := index.WriteUnit(w.body, b.Buf)
	w.blocks, w.dataBytes = append(w.blocks, entry{sep: make([]byte, 8), unit: u}), w.dataBytes+u.Len
	w.last = binary.BigEndian.AppendUint64(nil, uint64(len(postings)-1))
	return err
}

// TestForgedPostingsFail: a merge does not pass on rows that stand twice, which nobody could read with the rows of others.
func TestForgedPostingsFail(t *testing.T) {
	long := column.Of(column.Long)
	posting := func(p ...uint64) func(*writer) error { return func(w *writer) error { return w.forged(p) } }
	runs := func(of ...rowset.Range) func(*writer) error {
		return func(w *writer) error {
			for _, r := range of {
				if err := w.addRun(0, nil, r); err != nil {
					return err
				}
			}
			return nil
		}
	}
	one := rowset.Range{Start: 2, End: 3}
	for what, fill := range map[string]func(*writer) error{
		"a gap that goes back":           posting(3<<1, 0, 1, 1<<64-1),
		"a run that goes back":           posting(2<<1|1, 0, 1, 1<<64-1, 0),
		"a run of no rows":               posting(3<<1|1, 0, 1, 0, 1<<64-1, 0, 0),
		"a row in two blocks of one key": runs(rowset.Range{End: 1}, one, one),
	} {
		for _, memory := range []int64{0, 1} { // as pairs, and key by key
			from := forgedNumbers(t, 3, Kind{sizes{block: 100, page: 100, runs: 1}}, fill)
			honest := forgedNumbers(t, 1, Kind{}, runs(rowset.Range{End: 1}))
			m, err := index.Concatenated([]uint32{3, 1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			spec := index.Spec{Columns: []column.Path{it.Path(long)}, Rows: 4}
			if _, _, err := (Kind{}).Merge(spec, []index.Source{from, honest}, m, index.Budget{Memory: memory}, &it.Body{}); !fault.Is(err, fault.Corrupt) {
				t.Errorf("%s, %d bytes: %v", what, memory, err)
			}
		}
	}
}

// TestForgedRowsAreCounted: keys that each have all rows end a merge at once, not after a visit to all rows for each of them.
func TestForgedRowsAreCounted(t *testing.T) {
	const rows, keys = 1 << 12, 1 << 12
	postings := make([][]uint64, keys)
	for i := range postings {
		postings[i] = []uint64{1<<1 | 1, 0, rows - 1}
	}
	from := forgedNumbers(t, rows, Kind{}, func(w *writer) error { return w.forged(postings...) })
	to := make([]uint32, rows)
	for i := range to {
		to[i] = uint32(i ^ 1)
	}
	m := index.NewOrdinalMap([]uint32{rows})
	m.Scatter(0, 0, to)
	if err := m.Seal(rows); err != nil {
		t.Fatal(err)
	}
	body := &it.Body{}
	spec := index.Spec{Columns: []column.Path{it.Path(column.Of(column.Long))}, Rows: rows}
	if _, _, err := (Kind{sizes{block: 10, page: 100, runs: 4096}}).Merge(spec, []index.Source{from}, m, index.Budget{}, body); !fault.Is(err, fault.Corrupt) {
		t.Error(err)
	}
	if body.Len() > 3*rows {
		t.Errorf("%d bytes were written before", body.Len())
	}
}
