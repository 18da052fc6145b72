package parquetio

import (
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
)

// How says by what a table column was found in a file.
type How uint8

// The ways of resolution, in their order: a file with any field id is resolved by ids alone; one without, by the table's name
// mapping if there is one; else by position, the n-th top-level column having id n and nested fields going by name
// (Iceberg's fallback for files that were written before ids).
const (
	Absent     How = iota // not in the file: every row has the default, or null
	ByID                  //
	ByMapping             //
	ByPosition            //
)

var howNames = [...]string{"absent", "id", "name mapping", "position"}

func (h How) String() string { return howNames[h] }

// Resolution tells where a bound column's values come from.
type Resolution struct {
	How How
	// Leaf is the Parquet path of the first leaf that is read, joined by dots; "" if nothing is.
	Leaf string
	// Physical is that leaf's stored type with its annotation, as "INT64 (TIMESTAMP_MILLIS)".
	Physical string
}

// Binding ties wanted table columns to a file's leaves. Spans, Decode and Statistics may run in several goroutines, but none
// beside LoadPageIndex or DropPageIndex.
type Binding struct {
	file   *File
	cols   []*bound
	leaves []int // file leaves to fetch, ascending
	index  map[int]*chunkIndex
}

// bound is one wanted column.
type bound struct {
	path    column.Path
	how     How
	plan    *plan
	readers []readerPlan
	flat    bool // one primitive leaf that no list repeats: decoded without keeping levels
}

// readerPlan is one leaf to read for a bound column.
type readerPlan struct {
	leaf *node
	conv *conversion
}

// Bind ties paths to the file's columns. A path must not run through a list or map: ask for the list itself. names is the
// table's name mapping, nil if it has none. A column whose file type cannot become the table's, or that is encrypted, is an
// Unsupported fault that names file, column and types.
func (f *File) Bind(paths []column.Path, names []facts.MappedField) (*Binding, error) {
	if f.sharedID {
		return nil, fault.New(fault.Corrupt, f.name, "two columns of the file have the same field id")
	}
	b := &Binding{file: f, index: map[int]*chunkIndex{}}
	for _, p := range paths {
		col, err := f.bindPath(p, names)
		if err != nil {
			return nil, fault.About(f.name, err)
		}
		b.cols = append(b.cols, col)
		for _, r := range col.readers {
			b.leaves = append(b.leaves, r.leaf.leaf)
		}
	}
	slices.Sort(b.leaves)
	b.leaves = slices.Compact(b.leaves)
	for _, leaf := range b.leaves {
		if err := f.checkLeaf(leaf); err != nil {
			return nil, fault.About(f.name, fault.About("column "+f.leaves[leaf].path(), err))
		}
	}
	b.shareIndexes()
	return b, nil
}

// checkLeaf refuses a column that no span could make readable, before anything is fetched.
func (f *File) checkLeaf(leaf int) error {
	n := f.leaves[leaf]
	for g := range f.meta.groups {
		k := &f.meta.groups[g].chunks[leaf]
		switch {
		case k.encrypted:
			return fault.New(fault.Unsupported, "", "is encrypted")
		case k.elsewhere:
			return fault.New(fault.Unsupported, "", "lies in another file")
		case k.phys != n.phys:
			return fault.New(fault.Corrupt, "", "is %s in the schema and %s in row group %d", n.phys, k.phys, g)
		case k.codec == codecLZO || k.codec < 0 || int(k.codec) >= len(codecNames):
			return unsupportedCodec(k.codec)
		case n.rep == 0 && k.numValues > f.meta.groups[g].rows || k.numValues < 0:
			return fault.New(fault.Corrupt, "", "claims %d values for %d rows in row group %d", k.numValues, f.meta.groups[g].rows, g)
		}
		if f.meta.groups[g].rows == 0 {
			continue
		}
		if _, err := f.chunkSpan(k); err != nil {
			return err
		}
	}
	return nil
}

// Len is the number of bound columns.
func (b *Binding) Len() int { return len(b.cols) }

// Resolution tells how column i was found.
func (b *Binding) Resolution(i int) Resolution {
	c := b.cols[i]
	r := Resolution{How: c.how}
	if len(c.readers) > 0 {
		r.Leaf, r.Physical = c.readers[0].leaf.path(), c.readers[0].leaf.typeName()
	}
	return r
}

// resolver finds table fields among the children of a file group.
type resolver struct {
	how   How
	names []facts.MappedField
}

func (f *File) resolver(names []facts.MappedField) resolver {
	switch {
	case f.hasIDs:
		return resolver{how: ByID}
	case names != nil:
		return resolver{how: ByMapping, names: names}
	default:
		return resolver{how: ByPosition}
	}
}

// find is the child of group that field is, nil if it is absent, and the resolver for what is below it.
func (r resolver) find(group *node, field column.Field) (*node, resolver) {
	switch r.how {
	case ByID:
		for _, k := range group.kids {
			if k.hasID && int(k.id) == field.ID {
				return k, r
			}
		}
	case ByMapping:
		for _, m := range r.names {
			if m.ID != field.ID {
				continue
			}
			for _, k := range group.kids {
				if slices.Contains(m.Names, k.name) {
					return k, resolver{how: ByMapping, names: m.Fields}
				}
			}
		}
	default:
		if group.parent == nil {
			if field.ID >= 1 && field.ID <= len(group.kids) {
				return group.kids[field.ID-1], r
			}
			return nil, r
		}
		for _, k := range group.kids {
			if k.name == field.Name {
				return k, r
			}
		}
	}
	return nil, r
}

// inside is the resolver for the fields of a list's element, a map's key or value.
func (r resolver) inside(field column.Field) resolver {
	if r.how != ByMapping {
		return r
	}
	for _, m := range r.names {
		if m.ID == field.ID || m.ID == 0 && slices.Contains(m.Names, field.Name) {
			return resolver{how: ByMapping, names: m.Fields}
		}
	}
	return resolver{how: ByMapping}
}
