package tabletest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/puffin"
)

// deleted is what deletes hide of a data file, kept apart because a vector takes the place of position deletes.
type deleted struct {
	positions, keys map[int]bool
	vector          map[int]bool // nil: none
	puffin          string       // of the vector
}

// Deleted reports whether deletes hide a row of the file.
func (f *DataFile) Deleted(pos int) bool {
	hidden := f.gone.positions
	if f.gone.vector != nil {
		hidden = f.gone.vector
	}
	return hidden[pos] || f.gone.keys[pos]
}

// Hidden counts the rows that deletes hide.
func (f *DataFile) Hidden() (n int) {
	for pos := range f.Rows {
		if f.Deleted(pos) {
			n++
		}
	}
	return n
}

// Delete commits one to three deletes of random forms that the table's format version has. Together with them a data file may
// be added, to which equality deletes of the same commit do not apply.
func (t *Table) Delete(tb testing.TB) {
	tb.Helper()
	if t.Writer.FormatVersion < 2 || len(t.Files) == 0 {
		return
	}
	var change lakewrite.Change
	sequence := t.Writer.LastSequence + 1
	if t.rng.IntN(3) == 0 {
		f, stated := t.write(tb, t.rng.IntN(100))
		f.sequence = sequence
		t.Files = append(t.Files, f)
		change.Add = append(change.Add, stated)
	}
	for range 1 + t.rng.IntN(3) {
		at := sequence
		if t.rng.IntN(4) == 0 { // a delete that was written before some of the files, as a late committer states it
			at = t.rng.Int64N(sequence + 1)
		}
		switch n := t.rng.IntN(5); {
		case n < 2:
			change.Add = append(change.Add, t.deletePositions(tb, at))
		case n == 2 && t.Writer.FormatVersion > 2:
			t.deleteByVector(tb, &change)
		default:
			change.Add = append(change.Add, t.deleteKeys(tb, at))
		}
	}
	if len(change.Remove) > 0 {
		slices.Sort(change.Remove)
		change.Remove = slices.Compact(change.Remove)
	}
	if _, err := t.Writer.Commit(context.Background(), change); err != nil {
		tb.Fatal(err)
	}
}

// newName is a path for a new file of the table.
func (t *Table) newName(kind, ext string) string {
	return filepath.Join(t.Dir, "data", fmt.Sprintf("%s-%08x.%s", kind, t.rng.Uint32(), ext))
}

// stat is a written delete file as a manifest states it.
func (t *Table) stat(tb testing.TB, path string, content lakewrite.Content, format facts.Format, records int, sequence int64) lakewrite.File {
	info, err := os.Stat(path)
	if err != nil {
		tb.Fatal(err)
	}
	f := lakewrite.File{Path: path, Format: format, Content: content, Records: int64(records), Size: info.Size()}
	if sequence != t.Writer.LastSequence+1 || t.rng.IntN(2) == 0 {
		f.Sequence = &sequence
	}
	return f
}

// positionSchema is that of position delete files; paths may be null, as some writers leave them.
var positionSchema = &column.Schema{Fields: []column.Field{
	{ID: 2147483546, Name: "file_path", Type: column.Of(column.String)},
	{ID: 2147483545, Name: "pos", Type: column.Of(column.Long), Required: true},
}}

// deletePositions writes a position delete file over some files, some rows of which dangle, and hides its rows.
func (t *Table) deletePositions(tb testing.TB, sequence int64) lakewrite.File {
	targets := []int{t.rng.IntN(len(t.Files))}
	for t.rng.IntN(2) == 0 {
		targets = append(targets, t.rng.IntN(len(t.Files)))
	}
	single := len(targets) == 1
	var rows []Row
	add := func(path string, pos int64) {
		rows = append(rows, Row{{Val: column.StringValue(path)}, {Val: column.IntValue(column.Long, pos)}})
	}
	for _, i := range targets {
		f := &t.Files[i]
		for _, pos := range t.somePositions(len(f.Rows)) {
			add(t.spelled(f.Path), int64(pos))
			if sequence >= f.sequence && pos < len(f.Rows) {
				f.gone.positions[pos] = true
			}
		}
	}
	switch t.rng.IntN(6) {
	case 0:
		add(t.Dir+"/data/never-was.parquet", 0)
		single = false
	case 1:
		rows = append(rows, Row{{Null: true}, {Val: column.IntValue(column.Long, 0)}})
	case 2:
		t.rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	path, format := t.writeDeletes(tb, "pos", positionSchema, rows)
	out := t.stat(tb, path, lakewrite.PositionDeletes, format, len(rows), sequence)
	if single && t.rng.IntN(2) == 0 {
		out.Referenced = t.Files[targets[0]].Path
	}
	if single && t.rng.IntN(2) == 0 && len(rows) > 0 && !rows[0][0].Null && !slices.ContainsFunc(rows, func(r Row) bool { return r[0].Val.S != rows[0][0].Val.S }) {
		bound := []byte(rows[0][0].Val.S)
		out.Metrics = map[int]lakewrite.Metric{2147483546: {Lower: bound, Upper: bound}}
	}
	return out
}

// spelled is a path as some engine writes it.
func (t *Table) spelled(path string) string {
	return []string{"", "", "file:", "file://", "hdfs://namenode:8020"}[t.rng.IntN(5)] + path
}

// somePositions is ascending positions, some past the end of the file.
func (t *Table) somePositions(rows int) []int {
	var out []int
	share := []float64{0.01, 0.1, 0.4, 1}[t.rng.IntN(4)]
	if t.rng.IntN(3) > 0 {
		share = min(share, 0.2)
	}
	for pos := range rows + 2 {
		if t.rng.Float64() < share {
			out = append(out, pos)
		}
	}
	return out
}

// writeDeletes writes rows as Parquet or Avro.
func (t *Table) writeDeletes(tb testing.TB, kind string, s *column.Schema, rows []Row) (string, facts.Format) {
	if t.rng.IntN(4) == 0 {
		path := t.newName(kind, "avro")
		if err := os.WriteFile(path, avroFile(s, rows), 0o600); err != nil {
			tb.Fatal(err)
		}
		return path, facts.Avro
	}
	path := t.newName(kind, "parquet")
	if err := WriteParquet(path, s, rows, NewLayout(t.rng)); err != nil {
		tb.Fatal(err)
	}
	return path, facts.Parquet
}

// deleteKeys writes an equality delete file over a random set of columns and hides the rows that its keys equal.
func (t *Table) deleteKeys(tb testing.TB, sequence int64) lakewrite.File {
	leaves := t.keyLeaves()
	schema := t.project(leaves)
	var keys []Row
	for range t.rng.IntN(8) {
		keys = append(keys, t.keyRow(leaves))
	}
	for i := range t.Files {
		f := &t.Files[i]
		if f.sequence >= sequence {
			continue
		}
		for pos, row := range f.Rows {
			if slices.ContainsFunc(keys, func(k Row) bool { return sameKey(k, row, leaves) }) {
				f.gone.keys[pos] = true
			}
		}
	}
	path, format := t.writeDeletes(tb, "eq", schema, keys)
	out := t.stat(tb, path, lakewrite.EqualityDeletes, format, len(keys), sequence)
	for _, i := range leaves {
		out.EqualityID = append(out.EqualityID, t.Leaves[i].Path.Leaf().ID)
	}
	t.rng.Shuffle(len(out.EqualityID), func(i, j int) {
		out.EqualityID[i], out.EqualityID[j] = out.EqualityID[j], out.EqualityID[i]
	})
	return out
}

// keyLeaves is one to three leaves that can be keys, ascending.
func (t *Table) keyLeaves() []int {
	var able []int
	for i, l := range t.Leaves {
		if k := l.Element().Kind; !l.List && k != column.Bool && k != column.Unknown {
			able = append(able, i)
		}
	}
	t.rng.Shuffle(len(able), func(i, j int) { able[i], able[j] = able[j], able[i] })
	able = able[:1+t.rng.IntN(min(3, len(able)))]
	slices.Sort(able)
	return able
}

// project is the schema of some leaves.
func (t *Table) project(leaves []int) *column.Schema {
	out := &column.Schema{}
	for _, i := range leaves {
		path := t.Leaves[i].Path
		if len(path) == 1 {
			out.Fields = append(out.Fields, path[0])
			continue
		}
		if n := len(out.Fields); n == 0 || out.Fields[n-1].ID != path[0].ID {
			top := path[0]
			top.Type.Fields = nil
			out.Fields = append(out.Fields, top)
		}
		top := &out.Fields[len(out.Fields)-1]
		top.Type.Fields = append(top.Type.Fields, path[1])
	}
	return out
}

// keyRow is the key of some row of the table, or one that perhaps no row has.
func (t *Table) keyRow(leaves []int) Row {
	f := &t.Files[t.rng.IntN(len(t.Files))]
	var from Row
	if len(f.Rows) > 0 && t.rng.IntN(5) > 0 {
		from = f.Rows[t.rng.IntN(len(f.Rows))]
	} else {
		from = t.row(f)
	}
	var out Row
	for _, i := range leaves {
		out = append(out, from[i])
	}
	return out
}

// sameKey compares as equality deletes do: null equals null, NaN equals NaN, zeros of either sign differ.
func sameKey(key, row Row, leaves []int) bool {
	for k, i := range leaves {
		a, b := key[k], row[i]
		switch {
		case a.Null != b.Null:
			return false
		case a.Null || a.Val.IsNaN() && b.Val.IsNaN():
		case a.Val != b.Val:
			return false
		}
	}
	return true
}

// deleteByVector gives some files deletion vectors in a new Puffin file. Vectors that lay beside an old one of theirs move along,
// since a manifest entry goes with its file.
func (t *Table) deleteByVector(tb testing.TB, change *lakewrite.Change) {
	for _, f := range change.Add {
		if f.Format == facts.Puffin {
			return // one Puffin file a commit
		}
	}
	targets, old := map[int]bool{}, map[string]bool{}
	for range 1 + t.rng.IntN(2) {
		i := t.rng.IntN(len(t.Files))
		targets[i] = true
		if p := t.Files[i].gone.puffin; p != "" {
			old[p] = true
		}
	}
	moved := maps.Clone(targets)
	for i := range t.Files {
		if old[t.Files[i].gone.puffin] {
			moved[i] = true
		}
	}
	path := t.newName("dv", "puffin")
	var buf bytes.Buffer
	w := puffin.NewWriter(&buf)
	var entries []lakewrite.File
	for _, i := range slices.Sorted(maps.Keys(moved)) {
		f := &t.Files[i]
		if targets[i] {
			f.gone.vector = map[int]bool{}
			for _, pos := range t.somePositions(len(f.Rows)) {
				f.gone.vector[pos] = true
			}
		}
		f.gone.puffin = path
		blob, err := w.Append(puffin.Blob{
			Type: "deletion-vector-v1", Fields: []int32{2147483645}, SnapshotID: -1, SequenceNumber: -1,
			Properties: map[string]string{"referenced-data-file": f.Path, "cardinality": fmt.Sprint(len(f.gone.vector))},
		}, Vector(f.gone.vector))
		if err != nil {
			tb.Fatal(err)
		}
		entries = append(entries, lakewrite.File{
			Path: path, Format: facts.Puffin, Content: lakewrite.PositionDeletes, Records: int64(len(f.gone.vector)), Referenced: f.Path,
			Offset: &blob.Offset, Length: &blob.Length,
		})
	}
	size, err := w.Finish(nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
	for i := range entries {
		entries[i].Size = size
	}
	change.Add = append(change.Add, entries...)
	change.Remove = append(change.Remove, slices.Sorted(maps.Keys(old))...)
}

// Vector is a deletion vector blob (Puffin specification, deletion-vector-v1), written from the specification alone.
func Vector(positions map[int]bool) []byte {
	body := []byte{0xd1, 0xd3, 0x39, 0x64}
	body = binary.LittleEndian.AppendUint64(body, 1) // one bitmap of 32-bit positions
	body = binary.LittleEndian.AppendUint32(body, 0) // its key: the upper half
	body = append(body, roaringBitmap(slices.Sorted(maps.Keys(positions)))...)
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(out, body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
}

// roaringBitmap is the portable serialisation of a 32-bit bitmap without run containers (RoaringFormatSpec).
func roaringBitmap(rows []int) []byte {
	const cookie, arrayMost = 12346, 4096
	var keys []int
	byKey := map[int][]int{}
	for _, r := range rows {
		if byKey[r>>16] == nil {
			keys = append(keys, r>>16)
		}
		byKey[r>>16] = append(byKey[r>>16], r&0xffff)
	}
	out := binary.LittleEndian.AppendUint32(nil, cookie)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(keys)))
	for _, k := range keys {
		out = binary.LittleEndian.AppendUint16(out, uint16(k))
		out = binary.LittleEndian.AppendUint16(out, uint16(len(byKey[k])-1))
	}
	at := len(out) + 4*len(keys)
	var data []byte
	for _, k := range keys {
		out = binary.LittleEndian.AppendUint32(out, uint32(at+len(data)))
		if len(byKey[k]) <= arrayMost {
			for _, low := range byKey[k] {
				data = binary.LittleEndian.AppendUint16(data, uint16(low))
			}
			continue
		}
		bits := make([]byte, 8192)
		for _, low := range byKey[k] {
			bits[low/8] |= 1 << (low % 8)
		}
		data = append(data, bits...)
	}
	return append(out, data...)
}
