// Package demo answers: how do the flights become an Iceberg table that a stranger could own?
//
// It writes the Parquet files of examples/flights below a folder, unchanged, and Iceberg metadata around them, as an engine
// would: with bounds and counts from the Parquet footers. It knows nothing of indexes.
package demo

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/skomerdb/skomer/examples/flights"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store"
)

// Schema is the schema of the flights; its ids are those of the Parquet files.
func Schema() *column.Schema {
	required := func(id int, name string, k column.Kind) column.Field {
		return column.Field{ID: id, Name: name, Type: column.Of(k), Required: true}
	}
	return &column.Schema{Fields: []column.Field{
		required(1, "flight_id", column.String),
		required(2, "departed", column.Timestamp),
		required(3, "origin", column.String),
		required(4, "destination", column.String),
		required(5, "distance", column.Int),
		required(6, "delay", column.Int),
		required(7, "airport", column.String),
		{ID: 8, Name: "state", Type: column.Of(column.String)},
	}}
}

// Write makes the table in a new folder at the absolute path location, which is also a prefix of keys in s.
func Write(ctx context.Context, s store.Store, location string) error {
	if err := os.MkdirAll(filepath.Join(location, "data"), 0o755); err != nil {
		return fault.Wrap(fault.Denied, location, err)
	}
	names, err := fs.Glob(flights.Data, "data/*.parquet")
	if err != nil {
		return err
	}
	files := make([]lakewrite.File, len(names))
	for i, name := range names {
		if files[i], err = copyFile(name, location); err != nil {
			return fault.About(name, err)
		}
	}
	table, err := lakewrite.Create(ctx, s, location, lakewrite.Spec{
		Schema: Schema(),
		UUID:   "5f6b8a52-7d3e-4c8e-9a01-2001f1190701",
		Start:  time.Date(2001, 7, 1, 0, 0, 0, 0, time.UTC),
	})
	if err != nil {
		return err
	}
	_, err = table.Append(ctx, files...)
	return err
}

// copyFile writes one data file and describes it as a manifest does.
func copyFile(name, location string) (lakewrite.File, error) {
	text, err := flights.Data.ReadFile(name)
	if err != nil {
		return lakewrite.File{}, err
	}
	target := path.Join(location, name)
	if err := os.WriteFile(filepath.FromSlash(target), text, 0o644); err != nil {
		return lakewrite.File{}, err
	}
	footer, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return lakewrite.File{}, err
	}
	metrics, err := fileMetrics(footer.Metadata())
	return lakewrite.File{
		Path: target, Format: facts.Parquet, Content: lakewrite.Data,
		Records: footer.NumRows(), Size: int64(len(text)), Metrics: metrics,
	}, err
}

// fileMetrics adds up the statistics of the row groups. Parquet's plain encoding of these types is also Iceberg's of bounds.
func fileMetrics(footer *format.FileMetaData) (map[int]lakewrite.Metric, error) {
	out := map[int]lakewrite.Metric{}
	for i, field := range Schema().Fields {
		var size, values, nulls int64
		var lower, upper []byte
		for _, group := range footer.RowGroups {
			chunk := &group.Columns[i].MetaData
			if chunk.PathInSchema[0] != field.Name {
				return nil, fmt.Errorf("column %d is %s, want %s", i, chunk.PathInSchema[0], field.Name)
			}
			size += chunk.TotalCompressedSize
			values += chunk.NumValues
			nulls += chunk.Statistics.NullCount
			lower = extreme(field.Type, lower, chunk.Statistics.MinValue, -1)
			upper = extreme(field.Type, upper, chunk.Statistics.MaxValue, 1)
		}
		out[field.ID] = lakewrite.Metric{Size: &size, Values: &values, Nulls: &nulls, Lower: lower, Upper: upper}
	}
	return out, nil
}

// extreme is the smaller (sign -1) or larger (sign 1) of two bounds; nil is none yet.
func extreme(t column.Type, a, b []byte, sign int) []byte {
	if a == nil {
		return b
	}
	if column.Compare(decode(t, a), decode(t, b))*sign < 0 {
		return b
	}
	return a
}

// decode reads a bound of one of the schema's types: little-endian integers, and text as it is.
func decode(t column.Type, b []byte) column.Value {
	if t.Kind == column.String {
		return column.StringValue(string(b))
	}
	var n uint64
	for i, x := range b {
		n |= uint64(x) << (8 * i)
	}
	if t.Size() == 4 {
		return column.IntValue(t.Kind, int64(int32(n)))
	}
	return column.IntValue(t.Kind, int64(n))
}
