package render

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/skomerdb/skomer/internal/column"
)

// tableRows is how many rows are held to find the widths. Longer answers go on in blocks that are never narrower.
const tableRows = 1000

// aligned draws columns for people.
type aligned struct {
	w       io.Writer
	names   table.Row
	configs []table.ColumnConfig
	block   []table.Row
	widths  []int
	began   bool
}

func newTable(w io.Writer, fields []column.Field) *aligned {
	out := &aligned{w: w, widths: make([]int, len(fields))}
	for i, f := range fields {
		align := text.AlignLeft
		if numeric(f.Type.Kind) {
			align = text.AlignRight
		}
		out.names = append(out.names, f.Name)
		out.widths[i] = text.StringWidthWithoutEscSequences(Printable(f.Name))
		out.configs = append(out.configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	return out
}

func numeric(k column.Kind) bool {
	switch k {
	case column.Int, column.Long, column.Float, column.Double, column.Decimal:
		return true
	default:
		return false
	}
}

func (t *aligned) Write(b *column.Batch) error {
	for row := range b.Rows {
		line := make(table.Row, len(b.Cols))
		for i, col := range b.Cols {
			s := Printable(cell(col, row, "NULL"))
			t.widths[i] = max(t.widths[i], text.StringWidthWithoutEscSequences(s))
			line[i] = s
		}
		if t.block = append(t.block, line); len(t.block) == tableRows {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *aligned) Close() error {
	if t.began && len(t.block) == 0 {
		return nil
	}
	return t.flush()
}

func (t *aligned) flush() error {
	tw := Plain()
	for i := range t.configs {
		t.configs[i].WidthMin = t.widths[i]
	}
	tw.SetColumnConfigs(t.configs)
	if !t.began {
		tw.AppendHeader(t.names)
	}
	tw.AppendRows(t.block)
	t.began, t.block = true, t.block[:0]
	return Print(t.w, tw)
}

// Plain is a table without borders, whose header stands above a line and whose cells are Printable.
func Plain() table.Writer {
	tw := table.NewWriter()
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	tw.SetStyle(style)
	tw.SuppressTrailingSpaces()
	return printed{tw}
}

// Right aligns a column, counted from 1, as numbers are.
func Right(column int) table.ColumnConfig {
	return table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight}
}

// Print writes a rendered table and a line end.
func Print(w io.Writer, tw table.Writer) error {
	_, err := fmt.Fprintln(w, tw.Render())
	return err
}
