package render

import (
	"encoding/csv"
	"io"

	"github.com/skomerdb/skomer/internal/column"
)

// commas writes CSV (RFC 4180) with a header. A null is an empty field; nested values are JSON.
type commas struct {
	w      *csv.Writer
	record []string
}

func newCSV(w io.Writer, fields []column.Field) (*commas, error) {
	out := &commas{w: csv.NewWriter(w), record: make([]string, len(fields))}
	for i, f := range fields {
		out.record[i] = f.Name
	}
	return out, out.w.Write(out.record)
}

func (c *commas) Write(b *column.Batch) error {
	for row := range b.Rows {
		for i, col := range b.Cols {
			c.record[i] = cell(col, row, "")
		}
		if err := c.w.Write(c.record); err != nil {
			return err
		}
	}
	return nil
}

func (c *commas) Close() error {
	c.w.Flush()
	return c.w.Error()
}

// cell is value i of a vector as one piece of text; nested values are JSON.
func cell(v *column.Vector, i int, null string) string {
	switch {
	case v.Type.Kind == column.Unknown || v.Null(i):
		return null
	case v.Type.Kind.Nested():
		return string(appendJSON(nil, v, i))
	default:
		value, _ := v.Value(i)
		return Text(value)
	}
}
