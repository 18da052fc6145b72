// Package render answers: how do rows look to whoever reads standard output?
//
// It turns batches into an aligned table for people, JSON lines, CSV, an Arrow stream or a Parquet file. It knows vectors and
// Iceberg types, and neither tables nor queries. Values that JSON has no form for are written as Iceberg's single-value
// JSON serialisation writes them (table specification, appendix D).
package render

import (
	"io"
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// Sink takes the rows of one answer.
type Sink interface {
	// Write takes one batch, whose columns run parallel to the sink's fields. It keeps nothing of it.
	Write(b *column.Batch) error
	// Close writes what is left. A sink without a single batch still writes its header.
	Close() error
}

// Formats is the names that New takes.
func Formats() []string { return []string{"table", "json", "csv", "arrow", "parquet"} }

// Binary reports whether a format is unfit for a terminal.
func Binary(format string) bool { return format == "arrow" || format == "parquet" }

// CheckFormat is an Invalid fault for a format that is not one of Formats.
func CheckFormat(format string) error {
	if slices.Contains(Formats(), format) {
		return nil
	}
	return fault.New(fault.Invalid, "--output", "%q is not a format", format).WithFix("use table, json, csv, arrow or parquet")
}

// New starts a sink of a format for columns of the given fields. A format unknown to CheckFormat is an Invalid fault.
func New(format string, w io.Writer, fields []column.Field) (Sink, error) {
	switch format {
	case "table":
		return newTable(w, fields), nil
	case "json":
		return newLines(w, fields), nil
	case "csv":
		return newCSV(w, fields)
	case "arrow":
		return newArrow(w, fields)
	case "parquet":
		return newParquet(w, fields)
	default:
		return nil, CheckFormat(format)
	}
}
