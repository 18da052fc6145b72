package tabletest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
)

// Table is an Iceberg table with the rows it holds.
type Table struct {
	Dir    string // its location
	Schema *column.Schema
	Leaves []Leaf
	Writer *lakewrite.Table
	Files  []DataFile
	rng    *rand.Rand
	upload store.Store // nil: the table lies on disk
}

// DataFile is a live data file with its rows in file order.
type DataFile struct {
	Path     string
	Rows     []Row
	domains  []Domain
	sequence int64
	gone     deleted
}

// RandomSchema makes a schema: an id, some columns of random types, a struct and a list.
func RandomSchema(rng *rand.Rand) *column.Schema {
	types := Types()
	rng.Shuffle(len(types), func(i, j int) { types[i], types[j] = types[j], types[i] })
	s := &column.Schema{Fields: []column.Field{{ID: 1, Name: "id", Type: column.Of(column.Long), Required: true}}}
	next := 2
	add := func(name string, t column.Type, required bool) {
		s.Fields = append(s.Fields, column.Field{ID: next, Name: name, Type: t, Required: required})
		next++
	}
	for i := range 3 + rng.IntN(4) {
		add(fmt.Sprintf("c%d %s", i, types[i].Kind), types[i], rng.IntN(4) == 0)
	}
	inner := []column.Field{
		{ID: next + 1, Name: "a", Type: types[6]}, {ID: next + 2, Name: "b", Type: types[7], Required: rng.IntN(2) == 0},
	}
	s.Fields = append(s.Fields, column.Field{ID: next, Name: "s", Type: column.Type{Kind: column.Struct, Fields: inner}})
	next += 3
	element := column.Field{ID: next + 1, Name: "element", Type: types[8]}
	s.Fields = append(s.Fields, column.Field{ID: next, Name: "l", Type: column.Type{Kind: column.List, Fields: []column.Field{element}}})
	return s
}

// Create writes an empty table with a random schema on disk.
func Create(t testing.TB, rng *rand.Rand, dir string) *Table {
	t.Helper()
	return create(t, rng, local.New(), dir)
}

// CreateIn writes an empty table with a random schema into a store whose keys are locations. Its rows cannot be deleted.
func CreateIn(t testing.TB, rng *rand.Rand, s store.Store, location string) *Table {
	t.Helper()
	table := create(t, rng, s, location)
	table.upload = s
	return table
}

func create(t testing.TB, rng *rand.Rand, s store.Store, dir string) *Table {
	t.Helper()
	schema := RandomSchema(rng)
	version := 1 + rng.IntN(3)
	for _, f := range schema.Fields {
		if k := f.Type.Kind; k == column.TimestampNS || k == column.TimestampNZ {
			version = 3
		}
	}
	w, err := lakewrite.Create(context.Background(), s, dir, lakewrite.Spec{Schema: schema, FormatVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return &Table{Dir: dir, Schema: schema, Leaves: Leaves(schema), Writer: w, rng: rng}
}

// Append adds n data files of up to most rows each in one commit.
func (t *Table) Append(tb testing.TB, n, most int) {
	tb.Helper()
	var files []lakewrite.File
	for range n {
		f, stated := t.write(tb, t.rng.IntN(most+1))
		if t.Writer.FormatVersion > 1 {
			f.sequence = t.Writer.LastSequence + 1
		}
		t.Files = append(t.Files, f)
		files = append(files, stated)
	}
	if _, err := t.Writer.Append(context.Background(), files...); err != nil {
		tb.Fatal(err)
	}
}

// Remove drops a random data file from the table.
func (t *Table) Remove(tb testing.TB) {
	tb.Helper()
	i := t.rng.IntN(len(t.Files))
	if _, err := t.Writer.Remove(context.Background(), t.Files[i].Path); err != nil {
		tb.Fatal(err)
	}
	t.Files = append(t.Files[:i:i], t.Files[i+1:]...)
}

// write makes a data file and what a manifest states of it.
func (t *Table) write(tb testing.TB, rows int) (DataFile, lakewrite.File) {
	tb.Helper()
	f := DataFile{
		Path: t.Dir + "/data/" + fmt.Sprintf("%08x.parquet", t.rng.Uint32()),
		gone: deleted{positions: map[int]bool{}, keys: map[int]bool{}},
	}
	path := f.Path
	if t.upload != nil {
		path = filepath.Join(tb.TempDir(), "file.parquet")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	for _, l := range t.Leaves {
		f.domains = append(f.domains, NewDomain(t.rng, l.Element(), !l.Path.Leaf().Required))
	}
	for range rows {
		f.Rows = append(f.Rows, t.row(&f))
	}
	return f, t.put(tb, &f, path)
}

// put writes the rows of a data file to path, and where the table lies in a store from there to it.
func (t *Table) put(tb testing.TB, f *DataFile, path string) lakewrite.File {
	tb.Helper()
	if err := WriteParquet(path, t.Schema, f.Rows, NewLayout(t.rng)); err != nil {
		tb.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		tb.Fatal(err)
	}
	if t.upload != nil {
		b, err := os.ReadFile(path)
		if err == nil {
			_, err = t.upload.PutNew(context.Background(), f.Path, bytes.NewReader(b))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	stated := lakewrite.File{Path: f.Path, Format: facts.Parquet, Records: int64(len(f.Rows)), Size: info.Size(), Metrics: map[int]lakewrite.Metric{}}
	for i, l := range t.Leaves {
		if m, ok := metric(t.rng, l, f.Rows, i); ok {
			stated.Metrics[l.Path.Leaf().ID] = m
		}
	}
	return stated
}

func (t *Table) row(f *DataFile) Row {
	row := make(Row, len(t.Leaves))
	outer := map[int]bool{}
	for i, l := range t.Leaves {
		d := f.domains[i]
		if len(l.Path) > 1 && !l.Path[0].Required {
			id := l.Path[0].ID
			if _, drawn := outer[id]; !drawn {
				outer[id] = t.rng.Float64() < 0.15
			}
			if outer[id] {
				row[i] = Cell{Null: true, Outer: true}
				continue
			}
		}
		switch {
		case t.rng.Float64() < d.NullRate:
			row[i] = Cell{Null: true}
		case l.List:
			row[i].List = []Cell{}
			for range t.rng.IntN(4) {
				if t.rng.IntN(6) == 0 {
					row[i].List = append(row[i].List, Cell{Null: true})
				} else {
					row[i].List = append(row[i].List, Cell{Val: d.Draw(t.rng)})
				}
			}
		default:
			row[i] = Cell{Val: d.Draw(t.rng)}
		}
	}
	return row
}

// Draw gives a value to compare leaf i with: mostly one that some row holds, else one near a file's domain.
func (t *Table) Draw(i int) column.Value {
	if len(t.Files) == 0 {
		return Domain{Type: t.Leaves[i].Element(), N: 10}.Draw(t.rng)
	}
	f := &t.Files[t.rng.IntN(len(t.Files))]
	if len(f.Rows) > 0 && t.rng.IntN(4) > 0 {
		c := f.Rows[t.rng.IntN(len(f.Rows))][i]
		if len(c.List) > 0 {
			c = c.List[t.rng.IntN(len(c.List))]
		}
		if !c.Null && !t.Leaves[i].List || c.Val.Kind == t.Leaves[i].Element().Kind {
			return c.Val
		}
	}
	d := f.domains[i]
	d.NaNRate = 0
	return d.Draw(t.rng)
}

// Expr is a random predicate over the table.
func (t *Table) Expr(depth int) Expr { return RandomExpr(t.rng, t.Leaves, depth, t.Draw) }

// Answer is the positions of the live rows that pass, by file.
func (t *Table) Answer(e Expr) map[string][]int {
	out := map[string][]int{}
	for _, f := range t.Files {
		for pos, row := range f.Rows {
			if !f.Deleted(pos) && e.Eval(row) == Yes {
				out[f.Path] = append(out[f.Path], pos)
			}
		}
	}
	return out
}
