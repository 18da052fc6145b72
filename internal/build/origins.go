package build

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/store"
)

// Left is a data file that left the table, as the snapshot states it that had it.
type Left struct {
	File
	FirstRowID, Sequence int64 // of rows for which the file itself holds no other
}

// maxOpened bounds the files that left of which footers are read although their own row ids are not wanted: they may hold others.
const maxOpened = 256

// origins is where the rows of a unit were before they were rewritten, by their row ids and last changes: row i was row old[i] of the
// file left[file[i]].
type origins struct {
	left      []Left
	tags      []store.Tag // of those that were opened
	file, old []uint32
	at        map[string]uint32 // in left, by stated path
}

// version names the contents of a row: its id and the sequence number of its last change.
type version struct{ id, changed int64 }

// stretch is rows of a file that left whose ids follow each other.
type stretch struct {
	version
	rows      int64
	file, row uint32
}

func compareVersions(a, b version) int {
	return cmp.Or(cmp.Compare(a.changed, b.changed), cmp.Compare(a.id, b.id))
}

// origins reads the row ids of the unit's files and finds the rows that have them in files that left. Nil: not every row of the unit
// states an id and a last change that exactly one such row has, or there are too many to tell.
func (b *Builder) origins(ctx context.Context, u Unit, files []*source, r *Result) (*origins, error) {
	rows := uint64(0)
	for _, s := range files {
		rows += uint64(s.rows)
	}
	if len(u.Left) == 0 || len(u.Carry) == 0 || rows == 0 || int64(rows) > b.memory()/64 {
		return nil, nil
	}
	wanted, err := b.stated(ctx, files, rows, r)
	if wanted == nil || err != nil {
		return nil, err
	}
	o := &origins{left: u.Left, tags: make([]store.Tag, len(u.Left)), at: map[string]uint32{}}
	for i, f := range u.Left {
		if _, twice := o.at[f.Stated]; twice {
			return nil, nil
		}
		o.at[f.Stated] = uint32(i)
	}
	likely, others := o.likely(wanted)
	known, err := b.known(ctx, o, likely, r)
	if err != nil {
		return nil, err
	}
	if known != nil && !o.resolve(wanted, known) && len(others) > 0 && len(others) <= maxOpened {
		if known, err = b.known(ctx, o, append(likely, others...), r); err != nil {
			return nil, err
		}
	}
	if known == nil || !o.resolve(wanted, known) {
		return nil, nil
	}
	return o, nil
}

// stated is what files hold of the rows in them; nil unless they hold it of every row.
func (b *Builder) stated(ctx context.Context, files []*source, rows uint64, r *Result) ([]version, error) {
	out := make([]version, 0, rows)
	for _, s := range files {
		own, err := bindRows(s.File, s.opened)
		if err != nil || own.held(0) != parquetio.ByID || own.held(1) != parquetio.ByID {
			return nil, nil //nolint:nilerr // a file that cannot be read so is built, which says why
		}
		complete, n := true, len(out)
		err = b.versions(ctx, own, r, func(_ uint32, v version, id, changed bool) {
			complete = complete && id && changed
			out = append(out, v)
		})
		switch {
		case err != nil && !permanent(err):
			return nil, err
		case err != nil || !complete || len(out)-n != int(s.rows):
			return nil, nil //nolint:nilerr // a file that cannot be read so is built, which says why
		}
	}
	return out, nil
}

// likely sorts the files that left: first those among whose own row ids some are wanted.
func (o *origins) likely(wanted []version) (likely, others []int) {
	order := make([]int, 0, len(o.left))
	for i := range o.left {
		if o.left[i].FirstRowID != facts.Unknown {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(o.left[a].FirstRowID, o.left[b].FirstRowID) })
	hit := make([]bool, len(order))
	for _, v := range wanted {
		k := sort.Search(len(order), func(k int) bool { return o.left[order[k]].FirstRowID > v.id }) - 1
		if k >= 0 && v.id-o.left[order[k]].FirstRowID < o.left[order[k]].Records {
			hit[k] = true
		}
	}
	for k, i := range order {
		if hit[k] {
			likely = append(likely, i)
		} else {
			others = append(others, i)
		}
	}
	return likely, others
}

// known is the ids and last changes of the rows of files that left, ascending; nil where two rows share them or there are too many. A
// file that cannot be read any more has none.
func (b *Builder) known(ctx context.Context, o *origins, files []int, r *Result) ([]stretch, error) {
	paths := make([]string, len(files))
	for k, i := range files {
		paths[k] = o.left[i].Path
	}
	opened, errs := parquetio.Open(ctx, b.Store, b.Footers, paths, make([]store.Tag, len(paths)))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, most := []stretch{}, int(b.memory()/128)
	for k, i := range files {
		err := errs[k]
		var s *source
		if err == nil {
			s, err = bindRows(o.left[i].File, opened[k])
		}
		if err == nil {
			o.tags[i] = opened[k].Tag
			out, err = b.stretches(ctx, s, &o.left[i], uint32(i), out, most, r)
		}
		if err != nil && !permanent(err) {
			return nil, err
		}
		if len(out) > most {
			return nil, nil
		}
	}
	slices.SortFunc(out, func(a, b stretch) int { return compareVersions(a.version, b.version) })
	for i := 1; i < len(out); i++ {
		if a, b := &out[i-1], &out[i]; a.changed == b.changed && b.id-a.id < a.rows {
			return nil, nil
		}
	}
	return out, nil
}

// stretches adds those of a file, up to most in all.
func (b *Builder) stretches(ctx context.Context, s *source, f *Left, no uint32, out []stretch, most int, r *Result) ([]stretch, error) {
	if s.held(0) == parquetio.Absent && s.held(1) == parquetio.Absent {
		return append(out, stretch{version{f.FirstRowID, f.Sequence}, f.Records, no, 0}), nil
	}
	from := len(out)
	err := b.versions(ctx, s, r, func(row uint32, v version, id, changed bool) {
		if !id {
			v.id = f.FirstRowID + int64(row)
		}
		if !changed {
			v.changed = f.Sequence
		}
		if n := len(out); n > from {
			if last := &out[n-1]; last.changed == v.changed && last.id+last.rows == v.id && last.row+uint32(last.rows) == row {
				last.rows++
				return
			}
		}
		if len(out) <= most {
			out = append(out, stretch{v, 1, no, row})
		}
	})
	if err != nil {
		out = out[:from]
	}
	return out, err
}

// resolve finds every wanted row; false if one is not known, or two are the same.
func (o *origins) resolve(wanted []version, known []stretch) bool {
	o.file, o.old = make([]uint32, len(wanted)), make([]uint32, len(wanted))
	at := 0
	for i, v := range wanted {
		if at == len(known) || !known[at].has(v) {
			at = sort.Search(len(known), func(k int) bool { return compareVersions(known[k].version, v) > 0 }) - 1
			if at < 0 || !known[at].has(v) {
				return false
			}
		}
		o.file[i], o.old[i] = known[at].file, known[at].row+uint32(v.id-known[at].id)
	}
	return true
}

func (s *stretch) has(v version) bool {
	return s.changed == v.changed && v.id >= s.id && v.id-s.id < s.rows
}

// bindRows finds the columns of row lineage in a file.
func bindRows(f File, o *parquetio.Opened) (*source, error) {
	if o.File.Rows() != f.Records || o.Size != f.Size || o.Tag == "" || f.Records > math.MaxUint32 {
		return nil, fault.New(fault.Corrupt, f.Path, "is not the file that the manifest states")
	}
	binding, err := o.File.Bind([]column.Path{{facts.RowID}, {facts.LastUpdated}}, nil)
	if err != nil {
		return nil, err
	}
	return &source{File: f, opened: o, binding: binding, rows: uint32(f.Records)}, nil
}

func (s *source) held(i int) parquetio.How { return s.binding.Resolution(i).How }

// versions reads the columns of row lineage of a file, row by row; id and changed tell what is not null.
func (b *Builder) versions(ctx context.Context, s *source, r *Result, visit func(row uint32, v version, id, changed bool)) error {
	return b.each(ctx, s, func(p part, data [][]byte) error {
		r.BytesRead += p.bytes
		if p.rows.Empty() {
			return nil
		}
		return s.binding.Decode(ctx, data, p.rows, 0, func(batch *column.Batch) error {
			for i := range batch.Rows {
				id, hasID := batch.Cols[0].Value(i)
				changed, hasChanged := batch.Cols[1].Value(i)
				visit(batch.Position(i), version{id.Int64(), changed.Int64()}, hasID, hasChanged)
			}
			return nil
		})
	})
}
