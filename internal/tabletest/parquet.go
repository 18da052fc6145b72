package tabletest

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/skomerdb/skomer/internal/column"
)

// Layout is the physical shape of a Parquet file.
type Layout struct {
	RowsPerGroup int64
	PageBytes    int
	PageVersion  int
	Dictionary   bool
	PageIndex    bool // page bounds kept
	Codec        compress.Codec
}

// Uncompressed is the codec of layouts whose bytes tests must foresee.
var Uncompressed compress.Codec = &parquet.Uncompressed

// NewLayout picks a layout.
func NewLayout(rng *rand.Rand) Layout {
	codecs := []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Zstd, &parquet.Gzip, &parquet.Lz4Raw}
	return Layout{
		RowsPerGroup: []int64{7, 50, 300, 100000}[rng.IntN(4)],
		PageBytes:    []int{64, 256, 2048, 1 << 20}[rng.IntN(4)],
		PageVersion:  1 + rng.IntN(2),
		Dictionary:   rng.IntN(2) == 0,
		PageIndex:    rng.IntN(3) > 0,
		Codec:        codecs[rng.IntN(len(codecs))],
	}
}

// WriteParquet writes rows as a Parquet file with Iceberg field ids.
func WriteParquet(path string, s *column.Schema, rows []Row, l Layout) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	schema := parquet.NewSchema("table", group(s.Fields, l))
	options := []parquet.WriterOption{
		schema, parquet.PageBufferSize(l.PageBytes), parquet.MaxRowsPerRowGroup(l.RowsPerGroup),
		parquet.DataPageVersion(l.PageVersion), parquet.Compression(l.Codec), parquet.DataPageStatistics(true),
	}
	leaves := Leaves(s)
	cols := make([]int, len(leaves))
	for i, leaf := range leaves {
		names := leafPath(leaf)
		at, ok := schema.Lookup(names...)
		if !ok {
			panic("no column " + leaf.Path.Name())
		}
		cols[i] = at.ColumnIndex
		if !l.PageIndex {
			options = append(options, parquet.SkipPageBounds(names...))
		}
	}
	w := parquet.NewWriter(f, options...)
	for _, row := range rows {
		if _, err := w.WriteRows([]parquet.Row{parquetRow(leaves, cols, row)}); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}

func leafPath(l Leaf) []string {
	var names []string
	for _, f := range l.Path {
		names = append(names, f.Name)
	}
	if l.List {
		names = append(names, "list", "element")
	}
	return names
}

func group(fields []column.Field, l Layout) parquet.Group {
	g := parquet.Group{}
	for _, f := range fields {
		n := node(f.Type, l)
		if !f.Required {
			n = parquet.Optional(n)
		}
		g[f.Name] = parquet.FieldID(n, f.ID)
	}
	return g
}

func node(t column.Type, l Layout) parquet.Node {
	switch t.Kind {
	case column.Struct:
		return group(t.Fields, l)
	case column.List:
		e := t.Fields[0]
		return parquet.List(parquet.FieldID(parquet.Optional(node(e.Type, l)), e.ID))
	}
	n := primitive(t)
	if l.Dictionary && t.Kind != column.Bool {
		n = parquet.Encoded(n, &parquet.RLEDictionary)
	}
	return n
}

func primitive(t column.Type) parquet.Node {
	switch t.Kind {
	case column.Bool:
		return parquet.Leaf(parquet.BooleanType)
	case column.Int:
		return parquet.Leaf(parquet.Int32Type)
	case column.Long:
		return parquet.Leaf(parquet.Int64Type)
	case column.Float:
		return parquet.Leaf(parquet.FloatType)
	case column.Double:
		return parquet.Leaf(parquet.DoubleType)
	case column.Decimal:
		return parquet.Decimal(t.Scale, t.Width, decimalStorage(t.Width))
	case column.Date:
		return parquet.Date()
	case column.Time:
		return parquet.TimeAdjusted(parquet.Microsecond, false)
	case column.Timestamp:
		return parquet.TimestampAdjusted(parquet.Microsecond, false)
	case column.TimestampTZ:
		return parquet.TimestampAdjusted(parquet.Microsecond, true)
	case column.TimestampNS:
		return parquet.TimestampAdjusted(parquet.Nanosecond, false)
	case column.TimestampNZ:
		return parquet.TimestampAdjusted(parquet.Nanosecond, true)
	case column.String:
		return parquet.String()
	case column.UUID:
		return parquet.UUID()
	case column.Fixed:
		return parquet.Leaf(parquet.FixedLenByteArrayType(t.Width))
	default:
		return parquet.Leaf(parquet.ByteArrayType)
	}
}

func decimalStorage(precision int) parquet.Type {
	switch {
	case precision <= 9:
		return parquet.Int32Type
	case precision <= 18:
		return parquet.Int64Type
	default:
		return parquet.FixedLenByteArrayType(16)
	}
}

func parquetRow(leaves []Leaf, cols []int, row Row) parquet.Row {
	out := make(parquet.Row, 0, len(leaves))
	for i, leaf := range leaves {
		out = appendCell(out, leaf, cols[i], row[i])
	}
	slices.SortStableFunc(out, func(a, b parquet.Value) int { return a.Column() - b.Column() })
	return out
}

func appendCell(out parquet.Row, leaf Leaf, col int, c Cell) parquet.Row {
	outer, own := levels(leaf.Path)
	switch {
	case c.Outer:
		return append(out, parquet.NullValue().Level(0, 0, col))
	case c.Null:
		return append(out, parquet.NullValue().Level(0, outer, col))
	case !leaf.List:
		return append(out, parquetValue(leaf.Path.Leaf().Type, c.Val).Level(0, outer+own, col))
	case len(c.List) == 0:
		return append(out, parquet.NullValue().Level(0, outer+own, col))
	}
	for i, e := range c.List {
		rep := min(i, 1)
		if e.Null {
			out = append(out, parquet.NullValue().Level(rep, outer+own+1, col))
		} else {
			out = append(out, parquetValue(leaf.Element(), e.Val).Level(rep, outer+own+2, col))
		}
	}
	return out
}

// levels is the definition levels of the optional structs around a leaf, and of the leaf itself.
func levels(p column.Path) (outer, own int) {
	for _, f := range p[:len(p)-1] {
		if !f.Required {
			outer++
		}
	}
	if !p.Leaf().Required {
		own = 1
	}
	return outer, own
}

func parquetValue(t column.Type, v column.Value) parquet.Value {
	switch t.Kind {
	case column.Bool:
		return parquet.BooleanValue(v.Lo != 0)
	case column.Int, column.Date:
		return parquet.Int32Value(int32(v.Lo))
	case column.Float:
		return parquet.FloatValue(float32(v.Float64()))
	case column.Double:
		return parquet.DoubleValue(v.Float64())
	case column.String, column.Binary:
		return parquet.ByteArrayValue([]byte(v.S))
	case column.UUID, column.Fixed:
		return parquet.FixedLenByteArrayValue([]byte(v.S))
	case column.Decimal:
		switch {
		case t.Width <= 9:
			return parquet.Int32Value(int32(v.Lo))
		case t.Width <= 18:
			return parquet.Int64Value(int64(v.Lo))
		}
		b := binary.BigEndian.AppendUint64(nil, uint64(v.Hi))
		return parquet.FixedLenByteArrayValue(binary.BigEndian.AppendUint64(b, v.Lo))
	default:
		return parquet.Int64Value(int64(v.Lo))
	}
}

// Unscaled is a decimal's unscaled value.
func Unscaled(v column.Value) *big.Int {
	b := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return b.Add(b, new(big.Int).SetUint64(v.Lo))
}
