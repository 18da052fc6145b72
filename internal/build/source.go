package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"math"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// source is a data file of a unit, opened.
type source struct {
	File
	opened  *parquetio.Opened
	binding *parquetio.Binding
	first   uint32 // ordinal of its first row in the unit
	rows    uint32
	read    hash.Hash // over the column bytes, in the order read
}

// lineage is the identity of the file as it was read.
func (s *source) lineage() lineage.File {
	footer := s.opened.File.FooterHash()
	return lineage.File{
		Path: s.Stated, Size: s.Size, Records: int64(s.rows), Tag: string(s.opened.Tag),
		FooterSHA256: hex.EncodeToString(footer[:]), ColumnsSHA256: hex.EncodeToString(s.read.Sum(nil)),
	}
}

// columns is every column that some index or file map of the unit wants, each once.
func (u *Unit) columns() []column.Path {
	var out []column.Path
	seen := map[int]bool{}
	for _, x := range slices.Concat(u.Indexes, u.Maps) {
		for _, c := range x.Columns {
			if id := c.Leaf().ID; !seen[id] {
				seen[id] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// reads is the paths whose vectors hold the columns: their own, or that of the list around an element.
func (u *Unit) reads() []column.Path {
	out := u.columns()
	for i, c := range out {
		out[i] = predicate.Column{Path: c}.Read()
	}
	return out
}

// open reads the footers and page indexes of the unit's files and sorts out those that cannot be indexed, or not together.
func (b *Builder) open(ctx context.Context, u Unit, r *Result) ([]*source, error) {
	paths := make([]string, len(u.Files))
	for i, f := range u.Files {
		paths[i] = f.Path
	}
	opened, errs := parquetio.Open(ctx, b.Store, b.Footers, paths, make([]store.Tag, len(paths)))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []*source
	together := ""
	total := uint64(0)
	for i, f := range u.Files {
		err := errs[i]
		if err != nil && !permanent(err) {
			return nil, err
		}
		var s *source
		if err == nil {
			s, err = bind(u, f, opened[i])
		}
		if err != nil {
			r.Skipped[f.Path] = err.Error()
			continue
		}
		how := s.resolution(u)
		if len(out) == 0 {
			together = how
		}
		if how != together || total+uint64(s.rows) > math.MaxUint32 {
			r.Later = append(r.Later, f)
			continue
		}
		s.first = uint32(total)
		total += uint64(s.rows)
		out = append(out, s)
	}
	return out, b.pageIndexes(ctx, out, len(u.Maps) > 0)
}

// bind finds the unit's columns in a file.
func bind(u Unit, f File, o *parquetio.Opened) (*source, error) {
	return bindTo(f, o, u.Snapshot.In(f.Ordinal, u.reads()), u.Snapshot.NameMapping)
}

// bindTo finds columns in a file, which must be what its manifest states.
func bindTo(f File, o *parquetio.Opened, columns []column.Path, mapping []facts.MappedField) (*source, error) {
	rows := o.File.Rows()
	switch {
	case rows != f.Records:
		return nil, fault.New(fault.Corrupt, f.Path, "the manifest counts %d rows and the footer %d", f.Records, rows)
	case o.Size != f.Size:
		return nil, fault.New(fault.Corrupt, f.Path, "the manifest states %d bytes and the store %d", f.Size, o.Size)
	case rows > math.MaxUint32:
		return nil, fault.New(fault.Unsupported, f.Path, "%d rows are more than an artifact can number", rows)
	case o.Tag == "":
		return nil, fault.New(fault.Unsupported, f.Path, "the store gives no entity tag to bind an index to")
	}
	binding, err := o.File.Bind(columns, mapping)
	if err != nil {
		return nil, err
	}
	return &source{File: f, opened: o, binding: binding, rows: uint32(rows), read: sha256.New()}, nil
}

// resolution is how the columns are found in the file, and what stands for those that it lacks; files of one artifact must agree.
func (s *source) resolution(u Unit) string {
	var parts []string
	for i, path := range u.columns() {
		c := s.column(u.Snapshot, path, i)
		part := c.Resolved + " " + c.Mapping + " " + c.Absent
		if s.binding.Resolution(i).How != parquetio.ByID {
			part += " " + c.LeafPath
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}

// maxLayoutBytes is the most that is read of a file for its layout, beside what comes with the footer.
const maxLayoutBytes = 64 << 10

// pageIndexes loads the page indexes of the bound columns, in one wave, and brings what layouts take beside them. Files without one keep
// row groups as their pages.
func (b *Builder) pageIndexes(ctx context.Context, files []*source, layouts bool) error {
	var reads []store.Read
	var who []*source
	for _, s := range files {
		missing := s.opened.Tail.Missing(s.binding.PageIndexSpans(nil))
		if layouts {
			missing = append(missing, s.layoutSpans()...)
		}
		if len(missing) > 0 {
			reads = append(reads, store.Read{Key: s.Path, Tag: s.opened.Tag, Spans: missing})
			who = append(who, s)
		}
	}
	if len(reads) > 0 {
		for i, res := range b.Store.Fetch(ctx, reads) {
			if res.Err != nil {
				continue
			}
			for k, span := range reads[i].Spans {
				who[i].opened.Tail.Add(span.Off, res.Data[k])
			}
		}
	}
	for _, s := range files {
		data, ok := s.opened.Tail.All(s.binding.PageIndexSpans(nil))
		if !ok {
			continue
		}
		if err := s.binding.LoadPageIndex(nil, data); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// groups is the first rows of the file's row groups.
func (s *source) groups() []uint32 {
	var out []uint32
	for _, g := range s.opened.File.RowGroups() {
		out = append(out, g.Start)
	}
	return out
}

// part is rows of one file that are read together.
type part struct {
	source *source
	rows   *rowset.Set
	spans  []store.Span
	bytes  int64
	last   bool // of its file
}

// parts cuts a file into its row groups.
func (s *source) parts() []part {
	var out []part
	for _, g := range s.opened.File.RowGroups() {
		if g.Len() == 0 {
			continue
		}
		p := part{source: s, rows: rowset.FromRanges(s.rows, []rowset.Range{g})}
		p.spans = s.binding.Spans(p.rows)
		for _, span := range p.spans {
			p.bytes += span.Len
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return []part{{source: s, rows: rowset.None(s.rows), last: true}}
	}
	out[len(out)-1].last = true
	return out
}

// absentPartition stands for the values of a column that files lack and their partitions give: each file its own.
const absentPartition = "partition value"

// column is how an indexed column was found in the file and what its values are.
func (s *source) column(snap *facts.Snapshot, path column.Path, i int) lineage.Column {
	r := s.binding.Resolution(i)
	leaf := path.Leaf()
	c := lineage.Column{
		FieldID: path.Base().Leaf().ID, Name: path.Base().Name(), LeafPath: r.Leaf, Resolved: r.How.String(), Type: leaf.Type.String(),
		Encoding: "key-v1:" + leaf.Type.Kind.String(), Physical: r.Physical,
	}
	if path.Derived() {
		c.Expr = path[len(path.Base())].Expr
	}
	if !s.opened.File.HasFieldIDs() {
		c.Mapping = facts.MappingDigest(snap.NameMapping)
	}
	if r.How == parquetio.Absent {
		read := predicate.Column{Path: path}.Read()
		switch held := snap.In(s.Ordinal, []column.Path{read})[0].Leaf().Initial; {
		case held != read.Leaf().Initial:
			c.Absent = absentPartition
		default:
			c.Absent = facts.AbsentState(held)
		}
	}
	return c
}
