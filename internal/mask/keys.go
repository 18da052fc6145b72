package mask

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/rowset"
)

// keySet is the key rows of one equality delete file. Keys compare as the specification says: null equals null, NaN equals
// NaN, -0.0 and 0.0 differ.
type keySet struct {
	cols   []column.Path
	rows   map[string]struct{}
	ranges []keyRange // one per column
	bytes  int64
	limit  int64
	sieve  sieve
}

// keyRange is what values a key column has.
type keyRange struct {
	null, nan, some bool
	min, max        column.Value // of the values that are neither; if some
	distinct        []column.Value
	many            bool // distinct is incomplete
}

// entryBytes is about what a map entry takes beside its key.
const entryBytes = 48

func newKeySet(cols []column.Path, limit int64) *keySet {
	return &keySet{cols: cols, rows: map[string]struct{}{}, ranges: make([]keyRange, len(cols)), limit: limit}
}

// add takes a batch of key rows.
func (k *keySet) add(b *column.Batch) error {
	var key []byte
	for i := range b.Rows {
		key = appendKey(key[:0], b.Cols, i)
		if _, known := k.rows[string(key)]; known {
			continue
		}
		k.rows[string(key)] = struct{}{}
		if k.bytes += int64(len(key)) + entryBytes; k.bytes > k.limit {
			return fault.New(fault.Exhausted, "", "its keys take more than %d bytes of memory", k.limit).
				WithFix("allow queries more memory, or compact the table so that its deletes are applied")
		}
		for c, v := range b.Cols {
			k.ranges[c].see(v, i)
		}
	}
	return nil
}

func (r *keyRange) see(col *column.Vector, i int) {
	v, ok := col.Value(i)
	switch {
	case !ok:
		r.null = true
	case v.IsNaN():
		r.nan = true
	default:
		r.seeValue(v)
	}
}

func (r *keyRange) seeValue(v column.Value) {
	if !r.many && !slices.Contains(r.distinct, v) {
		r.distinct = append(r.distinct, v)
		if r.many = len(r.distinct) > maxProbed; r.many {
			r.distinct = nil
		}
	}
	switch {
	case !r.some:
		r.some, r.min, r.max = true, v, v
	case column.Compare(v, r.min) < 0:
		r.min = v
	case column.Compare(v, r.max) > 0:
		r.max = v
	}
}

// appendKey appends row i of cols so that rows are equal where their bytes are. Both sides are read as one type per column.
func appendKey(dst []byte, cols []*column.Vector, i int) []byte {
	for _, v := range cols {
		dst = appendCell(dst, v, i)
	}
	return dst
}

func appendCell(dst []byte, v *column.Vector, i int) []byte {
	if v.Type.Kind == column.Unknown || v.Null(i) {
		return append(dst, 0)
	}
	switch kind := v.Type.Kind; {
	case kind == column.Bool || kind.Floating():
		x, _ := v.Value(i)
		return appendValue(dst, x, false)
	case kind.VarLen():
		raw := v.Raw(i)
		dst = binary.AppendUvarint(append(dst, 1), uint64(len(raw)))
		return append(dst, raw...)
	default:
		return append(append(dst, 1), v.Raw(i)...)
	}
}

// rowsIn appends to hits the file positions of the rows of b that are in the set.
func (k *keySet) rowsIn(b *column.Batch, hits []uint32) []uint32 {
	if len(b.Cols) == 1 && b.Cols[0].Dict != nil && b.Cols[0].Dict.Len <= b.Rows {
		return k.rowsInDictionary(b, hits)
	}
	if k.siftable(b) {
		return k.sifted(b, hits)
	}
	var key []byte
	for i := range b.Rows {
		key = appendKey(key[:0], b.Cols, i)
		if _, in := k.rows[string(key)]; in {
			hits = append(hits, b.Position(i))
		}
	}
	return hits
}

// rowsInDictionary looks every distinct value up once.
func (k *keySet) rowsInDictionary(b *column.Batch, hits []uint32) []uint32 {
	v := b.Cols[0]
	in := make([]bool, v.Dict.Len)
	var key []byte
	some := false
	for i := range in {
		key = appendCell(key[:0], v.Dict, i)
		_, in[i] = k.rows[string(key)]
		some = some || in[i]
	}
	_, null := k.rows["\x00"]
	if !some && !null {
		return hits
	}
	for i := range b.Rows {
		if v.Null(i) && null || !v.Null(i) && in[v.Idx[i]] {
			hits = append(hits, b.Position(i))
		}
	}
	return hits
}

// mayHold is the rows of interest in which a key may occur, by the bounds of row groups and loaded page indexes.
func (k *keySet) mayHold(b *parquetio.Binding, interest *rowset.Set) *rowset.Set {
	out := interest
	for i := range k.cols {
		s := b.Statistics(i)
		var may []rowset.Range
		for g := range s.Groups {
			switch {
			case !interest.Intersects(s.Groups[g].Rows) || !k.ranges[i].mayBeIn(&s.Groups[g]):
			case len(s.Pages[g]) == 0:
				may = append(may, s.Groups[g].Rows)
			default:
				for p := range s.Pages[g] {
					if k.ranges[i].mayBeIn(&s.Pages[g][p]) {
						may = append(may, s.Pages[g][p].Rows)
					}
				}
			}
		}
		out = rowset.And(out, rowset.FromRanges(interest.Size(), may))
	}
	return out
}

// mayBeIn reports whether rows with such bounds may hold a value of the range.
func (r *keyRange) mayBeIn(b *parquetio.Bounds) bool {
	switch {
	case r.null && b.Nulls != 0, r.nan && b.NaNs != 0:
		return true
	case !r.some || b.AllNull():
		return false
	case b.Min != nil && column.Compare(r.max, *b.Min) < 0, b.Max != nil && column.Compare(r.min, *b.Max) > 0:
		return false
	default:
		return true
	}
}

// keyColumns is the columns of an equality delete file in the order of their field ids, and a text that names them with the
// types in which both sides are read. A column that was dropped is found in the schema that had it, and each in its widest type.
func (sc *scope) keyColumns(i int32) ([]column.Path, string, error) {
	d := &sc.snapshot.Deletes
	ids := slices.Clone(d.FieldIDs[i])
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 {
		return nil, "", fault.New(fault.Corrupt, d.Path[i], "holds equality deletes without field ids")
	}
	var cols []column.Path
	var text strings.Builder
	for _, id := range ids {
		path := sc.keyColumn(id)
		switch {
		case path == nil:
			return nil, "", fault.New(fault.Corrupt, d.Path[i], "deletes by field id %d, which no schema of the table has", id)
		case path.Repeated() || path.Leaf().Type.Kind.Nested() || path.Leaf().Type.Kind == column.Variant:
			return nil, "", fault.New(fault.Unsupported, d.Path[i], "deletes by %s, which is not a plain value", path.Name())
		}
		cols = append(cols, path)
		fmt.Fprintf(&text, "%d %s;", id, path.Leaf().Type)
	}
	text.WriteString(facts.MappingDigest(sc.snapshot.NameMapping))
	return cols, text.String(), nil
}

func (sc *scope) keyColumn(id int) column.Path {
	best := sc.snapshot.Schema.ByID(id)
	for _, number := range schemaNumbers(sc.snapshot.Schemas) {
		if p := sc.snapshot.Schemas[number].ByID(id); p != nil && (best == nil || wider(p.Leaf().Type, best.Leaf().Type)) {
			best = p
		}
	}
	return best
}

// schemaNumbers is the ids of schemas, newest first.
func schemaNumbers(schemas map[int]*column.Schema) []int {
	out := make([]int, 0, len(schemas))
	for n := range schemas {
		out = append(out, n)
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

// wider reports whether Iceberg promotes b to a (specification, "Schema Evolution").
func wider(a, b column.Type) bool {
	switch b.Kind {
	case column.Unknown:
		return a.Kind != column.Unknown
	case column.Int:
		return a.Kind == column.Long
	case column.Float:
		return a.Kind == column.Double
	case column.Decimal:
		return a.Kind == column.Decimal && a.Scale == b.Scale && a.Width > b.Width
	case column.Date:
		return a.Kind == column.Timestamp || a.Kind == column.TimestampNS
	default:
		return false
	}
}
