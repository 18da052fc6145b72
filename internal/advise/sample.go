package advise

import (
	"context"
	"slices"
	"time"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/expression"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// sampledGroups is how many row groups, of as many files, are read; maxSample bounds their rows.
const (
	sampledGroups = 4
	maxSample     = 1 << 20
)

// group is the rows of one row group, decoded.
type group struct {
	rows  uint32
	cols  [][]*column.Vector // per path the vectors, in order
	bytes []int64            // per path, as stored
	// stored is the bytes of all paths, where several are made of one column that column's once.
	stored int64
	held   int64         // bytes of the columns as decoded, and of what expressions make of them
	took   time.Duration // to decode
}

// sample is a few row groups and what was found on the way.
type sample struct {
	groups []group
	files  []fileShape
}

// fileShape is what the footer of one sampled file says.
type fileShape struct {
	rows, bytes int64
	groups      int
}

// sample reads paths in one row group of a few files.
func (r *Reader) sample(ctx context.Context, s *facts.Snapshot, paths []column.Path) (*sample, error) {
	at := spread(&s.Files, sampledGroups)
	if len(at) == 0 {
		return nil, fault.New(fault.Unsupported, s.Location, "has no Parquet file with rows to measure").WithFix("indexes are built of Parquet data files")
	}
	keys := make([]string, len(at))
	for i, f := range at {
		keys[i] = s.Files.Path[f]
	}
	opened, errs := parquetio.Open(ctx, r.Data, r.Footers, keys, make([]store.Tag, len(keys)))
	out := &sample{}
	for i, f := range at {
		if errs[i] != nil {
			return nil, errs[i]
		}
		file := opened[i].File
		groups := file.RowGroups()
		out.files = append(out.files, fileShape{rows: file.Rows(), bytes: s.Files.Size[f], groups: len(groups)})
		g := groups[(i*len(groups))/len(at)]
		if g.Len() == 0 {
			continue
		}
		if g.Len() > maxSample/sampledGroups {
			g.End = g.Start + maxSample/sampledGroups
		}
		decoded, err := r.decode(ctx, s, f, opened[i], paths, g)
		if err != nil {
			return nil, err
		}
		out.groups = append(out.groups, *decoded)
	}
	if len(out.groups) == 0 {
		return nil, fault.New(fault.Unsupported, s.Location, "has no rows to measure")
	}
	return out, nil
}

// decode reads the rows of g, column by column.
func (r *Reader) decode(ctx context.Context, s *facts.Snapshot, at int, o *parquetio.Opened, paths []column.Path, g rowset.Range) (*group, error) {
	out := &group{rows: g.Len(), cols: make([][]*column.Vector, len(paths)), bytes: make([]int64, len(paths))}
	rows := rowset.FromRanges(uint32(o.File.Rows()), []rowset.Range{g})
	for i, p := range paths {
		b, err := o.File.Bind(s.In(at, []column.Path{predicate.Column{Path: p}.Read()}), s.NameMapping)
		if err != nil {
			return nil, err
		}
		spans := b.Spans(rows)
		var data [][]byte
		if len(spans) > 0 {
			res := r.Data.Fetch(ctx, []store.Read{{Key: s.Files.Path[at], Tag: o.Tag, Spans: spans}})[0]
			if res.Err != nil {
				return nil, fault.About(s.Files.Path[at], res.Err)
			}
			data = res.Data
		}
		for _, d := range data {
			out.bytes[i] += int64(len(d))
		}
		first := !slices.ContainsFunc(paths[:i], func(q column.Path) bool { return sameColumn(p, q) })
		if first {
			out.stored += out.bytes[i]
		}
		var known *column.Vector // a dictionary that was counted
		start := time.Now()
		err = b.Decode(ctx, data, rows, 0, func(batch *column.Batch) error {
			values, err := batch.Cols[0], error(nil)
			if first {
				out.held += values.MemorySize()
				if values.Dict != nil && values.Dict == known {
					out.held -= known.MemorySize()
				}
				known = values.Dict
			}
			if p.Derived() {
				if values, err = expression.Apply(p, values); err == nil {
					out.held += values.MemorySize()
				}
			}
			if err == nil {
				out.cols[i] = append(out.cols[i], values.Clone())
			}
			return err
		})
		out.took += time.Since(start)
		if err != nil {
			return nil, fault.About(s.Files.Path[at], err)
		}
	}
	return out, nil
}

// sameColumn tells whether two paths are made of one column of the file.
func sameColumn(p, q column.Path) bool {
	return predicate.Column{Path: p}.Read().Leaf().ID == predicate.Column{Path: q}.Read().Leaf().ID
}

// sink counts a body and keeps it where a test of it is wanted.
type sink struct {
	n    int64
	body []byte
	keep bool
}

func (s *sink) Write(p []byte) (int, error) {
	s.n += int64(len(p))
	if s.keep {
		s.body = append(s.body, p...)
	}
	return len(p), nil
}

func (s *sink) Offset() int64 { return s.n }

// made is an artifact built of a sampled row group.
type made struct {
	rows   uint32
	bytes  int64 // body and root
	took   time.Duration
	reason string // why nothing was kept
	root   []byte
	body   []byte
}

// build makes an artifact of each sampled row group. cols are the paths of the declaration, by their number in the sample.
func (x *sample) build(d kinds.Declaration, cols []int, temp string, keep bool) ([]made, error) {
	var out []made
	for i := range x.groups {
		m, err := x.groups[i].build(d, cols, temp, keep)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (g *group) build(d kinds.Declaration, cols []int, temp string, keep bool) (m made, err error) {
	start := time.Now()
	spec := index.Spec{Columns: d.Columns, Params: d.Params, Rows: g.rows, RowGroups: []uint32{0}, Pages: []uint32{0}}
	b, err := d.Kind.NewBuilder(spec, index.Budget{Memory: 256 << 20, TempDir: temp})
	if err != nil {
		return m, err
	}
	defer func() { _ = b.Close() }()
	for k := range g.cols[cols[0]] {
		row := make([]*column.Vector, len(cols))
		for i, c := range cols {
			row[i] = g.cols[c][k]
		}
		if err := b.Add(row); err != nil {
			return m, err
		}
	}
	s := &sink{keep: keep}
	m.rows = g.rows
	m.root, m.reason, err = b.Finish(s)
	m.bytes, m.body, m.took = s.n+int64(len(m.root)), s.body, time.Since(start)
	return m, err
}
