package tabletest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/lake/meta"
	"github.com/skomerdb/skomer/internal/store/local"
)

// Evolving is an Iceberg table whose schema, partitioning, refs and history change at random. It remembers which field every
// column of every data file was written as, and answers from that for every snapshot, branch and tag.
type Evolving struct {
	Dir    string
	Writer *lakewrite.Table
	// Steps tells what was done, for failures.
	Steps []string

	rng      *rand.Rand
	schema   *column.Schema
	next     int // field id
	named    int // columns named so far
	spec     *facts.Spec
	specs    int
	bareMode bool // some files are written without field ids
	names    map[int][]string
	unnamed  map[int][]string // names that were taken from columns
	nameless map[int]bool     // columns that the mapping never names
	ever     []column.Field   // every column there was, for the name mapping
	moments  []*moment        // snapshots that are not expired
	expired  []int64
	heads    map[string]*moment // by branch
	tags     map[string]*moment
	snapshot int64    // the next one's id
	written  []string // paths of data files that are there
}

// moment is a snapshot: its files, and the schema it was committed under.
type moment struct {
	id     int64
	schema *column.Schema
	files  []*writtenFile
	gone   map[*writtenFile]map[int]bool // positions that deletes hide
}

// View is what one way of asking sees of an evolving table.
type View struct {
	At string // as in a query
	*Table
}

// CreateEvolving writes an empty table.
func CreateEvolving(t testing.TB, rng *rand.Rand, dir string) *Evolving {
	t.Helper()
	e := &Evolving{
		Dir: dir, rng: rng, next: 1, spec: &facts.Spec{}, bareMode: rng.IntN(3) == 0, names: map[int][]string{},
		unnamed: map[int][]string{}, nameless: map[int]bool{},
		heads: map[string]*moment{}, tags: map[string]*moment{}, snapshot: 1000,
	}
	version := 1 + rng.IntN(3)
	e.schema = &column.Schema{Fields: []column.Field{e.field(column.Of(column.Long), "id")}}
	e.schema.Fields[0].Required = true
	for range 4 + rng.IntN(3) {
		e.schema.Fields = append(e.schema.Fields, e.field(e.randomType(version), ""))
	}
	s := e.field(column.Type{Kind: column.Struct}, "")
	s.Type.Fields = []column.Field{e.field(e.randomType(version), ""), e.field(e.randomType(version), "")}
	l := e.field(column.Type{Kind: column.List}, "")
	l.Type.Fields = []column.Field{e.field(e.randomType(version), "element")}
	e.schema.Fields = append(e.schema.Fields, s, l)
	spec := lakewrite.Spec{Schema: e.schema, FormatVersion: version}
	if e.bareMode {
		e.remember(e.schema.Fields, &e.ever)
		spec.NameMapping = e.mapping(e.ever)
	}
	var err error
	e.Writer, err = lakewrite.Create(context.Background(), local.New(), dir, spec)
	e.must(t, err)
	e.heads["main"] = &moment{id: meta.None, schema: e.schema}
	return e
}

func (e *Evolving) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v, after %v", err, e.Steps)
	}
}

func (e *Evolving) did(format string, args ...any) {
	e.Steps = append(e.Steps, fmt.Sprintf(format, args...))
}

// field makes a new optional column; "" gives it a name that no column had.
func (e *Evolving) field(t column.Type, name string) column.Field {
	if name == "" {
		e.named++
		name = fmt.Sprintf("c%d", e.named)
	}
	f := column.Field{ID: e.next, Name: name, Type: t}
	e.next++
	return f
}

func (e *Evolving) randomType(version int) column.Type {
	types := Types()
	for {
		t := types[e.rng.IntN(len(types))]
		if version > 2 || t.Kind != column.TimestampNS && t.Kind != column.TimestampNZ {
			return t
		}
	}
}

// Schema is the table's present schema.
func (e *Evolving) Schema() *column.Schema { return e.schema }

// Evolve changes the table in one random way.
func (e *Evolving) Evolve(t testing.TB) {
	t.Helper()
	changes := []func(testing.TB){
		e.rename, e.reorder, e.add, e.add, e.drop, e.dropAndAdd, e.promote, e.promote, e.repartition, e.repartition, e.branch, e.tag,
		e.rollback, e.expire, e.upgrade, e.remove, e.delete, e.delete, e.delete, e.Update, e.Overwrite,
		func(t testing.TB) { e.Compact(t, 1) }, func(t testing.TB) { e.Compact(t, 4) }, func(t testing.TB) { e.RemoveOrphans(t) },
	}
	if e.bareMode {
		changes = append(changes, e.remap, e.remap, e.remap, e.remap, e.dropAndAdd, e.dropAndAdd)
	}
	changes[e.rng.IntN(len(changes))](t)
}

// change makes a copy of the present schema, as edit leaves it, the present one.
func (e *Evolving) change(t testing.TB, edit func(*column.Schema)) {
	s := &column.Schema{ID: e.schema.ID + 1, Fields: copyFields(e.schema.Fields)}
	edit(s)
	e.schema = s
	if e.bareMode {
		e.remember(s.Fields, &e.ever)
		e.Writer.Properties[meta.NameMappingProperty] = meta.NameMappingJSON(e.mapping(e.ever))
	}
	e.must(t, e.Writer.SetSchema(context.Background(), s))
}

func copyFields(fields []column.Field) []column.Field {
	out := slices.Clone(fields)
	for i := range out {
		out[i].Type.Fields = copyFields(out[i].Type.Fields)
	}
	return out
}

// some picks a column other than id: of the top level or of a struct. fields is where it lies.
func (e *Evolving) some(s *column.Schema) (fields *[]column.Field, i int) {
	fields = &s.Fields
	i = 1 + e.rng.IntN(len(s.Fields)-1)
	if f := &s.Fields[i]; f.Type.Kind == column.Struct && e.rng.IntN(2) == 0 {
		return &f.Type.Fields, e.rng.IntN(len(f.Type.Fields))
	}
	return fields, i
}

func (e *Evolving) rename(t testing.TB) {
	e.change(t, func(s *column.Schema) {
		fields, i := e.some(s)
		old := (*fields)[i].Name
		e.named++
		(*fields)[i].Name = fmt.Sprintf("c%d", e.named)
		e.did("rename %s to %s", old, (*fields)[i].Name)
	})
}

func (e *Evolving) reorder(t testing.TB) {
	e.change(t, func(s *column.Schema) {
		e.rng.Shuffle(len(s.Fields)-1, func(i, j int) { s.Fields[i+1], s.Fields[j+1] = s.Fields[j+1], s.Fields[i+1] })
		e.did("reorder")
	})
}

// added is a new column, in format version 3 often with an initial default, which may make it required.
func (e *Evolving) added(name string, typ column.Type) column.Field {
	f := e.field(typ, name)
	if e.Writer.FormatVersion < 3 || typ.Kind.Nested() || typ.Kind == column.Unknown || e.rng.IntN(3) == 0 {
		return f
	}
	v := Domain{Type: typ, Low: -20, N: 40}.Draw(e.rng)
	f.Initial, f.Required = &v, e.rng.IntN(2) == 0
	return f
}

func (e *Evolving) add(t testing.TB) {
	e.change(t, func(s *column.Schema) {
		fields, i := e.some(s)
		typ := e.randomType(e.Writer.FormatVersion)
		if e.Writer.FormatVersion > 2 && e.rng.IntN(6) == 0 && fields == &s.Fields {
			typ = column.Of(column.Unknown)
		}
		f := e.added("", typ)
		*fields = slices.Insert(*fields, i, f)
		e.did("add %s %s default %v", f.Name, f.Type, f.Initial)
	})
}

// droppable is false for the last field of a struct and for the source of a present partition field.
func (e *Evolving) droppable(fields []column.Field, i int) bool {
	return len(fields) > 1 && !slices.ContainsFunc(e.spec.Fields, func(p facts.PartitionField) bool { return p.SourceID == fields[i].ID })
}

func (e *Evolving) drop(t testing.TB) {
	e.change(t, func(s *column.Schema) {
		fields, i := e.some(s)
		if len(s.Fields) > 4 && e.droppable(*fields, i) {
			e.did("drop %s", (*fields)[i].Name)
			*fields = slices.Delete(*fields, i, i+1)
		}
	})
}

// dropAndAdd replaces a column by another one of its name. The name mapping, if the table has one, either hands the name on, so
// that files without ids show their old values, or keeps it for the old column.
func (e *Evolving) dropAndAdd(t testing.TB) {
	e.change(t, func(s *column.Schema) {
		fields, i := e.some(s)
		old := (*fields)[i]
		if !e.droppable(*fields, i) || old.Type.Kind.Nested() {
			return
		}
		typ := e.randomType(e.Writer.FormatVersion)
		if e.bareMode {
			typ = old.Type
		}
		f := e.added(old.Name, typ)
		if e.bareMode {
			e.names[f.ID] = []string{}
			if e.rng.IntN(2) == 0 && e.unnamed[old.ID] == nil && !e.partitions(old.ID) {
				e.names[f.ID], e.names[old.ID] = e.names[old.ID], []string{}
				f.Required = f.Required && old.Required // it shows the old one's nulls
			} else {
				e.nameless[f.ID] = true
			}
		}
		(*fields)[i] = f
		e.did("drop and add %s, now %s default %v, names %v", old.Name, f.Type, f.Initial, e.names[f.ID])
	})
}

// partitions reports whether a field was ever the source of a partition field.
func (e *Evolving) partitions(id int) bool {
	return slices.ContainsFunc(e.Writer.Specs, func(s *facts.Spec) bool {
		return slices.ContainsFunc(s.Fields, func(p facts.PartitionField) bool { return p.SourceID == id })
	})
}

// remap takes all of a column's names out of the name mapping, or puts them back. A column that lost only some, or by which files
// are partitioned, would have values by the manifests of files without ids, and none by the mapping.
func (e *Evolving) remap(t testing.TB) {
	fields, i := e.some(e.schema)
	id := (*fields)[i].ID
	within := slices.ContainsFunc((*fields)[i].Type.Fields, func(f column.Field) bool { return e.partitions(f.ID) })
	if (*fields)[i].Required || e.nameless[id] || e.partitions(id) || within {
		return
	}
	if names := e.unnamed[id]; names != nil {
		e.names[id] = append(e.names[id], names...)
		delete(e.unnamed, id)
	} else {
		e.unnamed[id], e.names[id] = e.names[id], []string{}
	}
	e.did("names of %s are %v", (*fields)[i].Name, e.names[id])
	e.Writer.Properties[meta.NameMappingProperty] = meta.NameMappingJSON(e.mapping(e.ever))
	e.must(t, e.Writer.Write(context.Background()))
}

func (e *Evolving) promote(t testing.TB) {
	e.change(t, func(s *column.Schema) {
		fields, i := e.some(s)
		f := &(*fields)[i]
		if f.Type.Kind == column.List {
			f = &f.Type.Fields[0]
		}
		before := f.Type
		switch f.Type.Kind {
		case column.Int:
			f.Type = column.Of(column.Long)
		case column.Float:
			f.Type = column.Of(column.Double)
		case column.Decimal:
			f.Type.Width = min(38, f.Type.Width+1+e.rng.IntN(12))
		case column.Date:
			if e.Writer.FormatVersion > 2 && !e.partitions(f.ID) {
				f.Type = column.Of([]column.Kind{column.Timestamp, column.TimestampNS}[e.rng.IntN(2)])
			}
		case column.Unknown:
			f.Type = e.randomType(3)
		}
		if f.Initial != nil {
			v := promoted(f.Type, *f.Initial)
			f.Initial = &v
		}
		e.did("promote %s %s to %s", f.Name, before, f.Type)
	})
}

func (e *Evolving) upgrade(t testing.TB) {
	if e.Writer.FormatVersion < 3 {
		e.did("upgrade to %d", e.Writer.FormatVersion+1)
		e.must(t, e.Writer.Upgrade(context.Background(), e.Writer.FormatVersion+1))
	}
}

// remember notes columns that appear for the first time, and their names.
func (e *Evolving) remember(fields []column.Field, ever *[]column.Field) {
	for _, f := range fields {
		i := slices.IndexFunc(*ever, func(x column.Field) bool { return x.ID == f.ID })
		if i < 0 {
			i = len(*ever)
			*ever = append(*ever, column.Field{ID: f.ID, Name: f.Name})
			if e.names[f.ID] == nil {
				e.names[f.ID] = []string{f.Name}
			}
		}
		if known := &(*ever)[i]; known.Name != f.Name {
			known.Name = f.Name
			switch taken := e.unnamed[f.ID]; {
			case e.nameless[f.ID]:
			case taken != nil:
				e.unnamed[f.ID] = append(taken, f.Name)
			default:
				e.names[f.ID] = append(e.names[f.ID], f.Name)
			}
		}
		e.remember(f.Type.Fields, &(*ever)[i].Type.Fields)
	}
}

func (e *Evolving) mapping(fields []column.Field) []facts.MappedField {
	out := []facts.MappedField{}
	for _, f := range fields {
		m := facts.MappedField{ID: f.ID, Names: slices.Clone(e.names[f.ID]), Fields: e.mapping(f.Type.Fields)}
		out = append(out, m)
	}
	return out
}
