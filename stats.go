package skomer

import (
	"context"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/advise"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/index/sketch"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/plan"
)

// TableStats is what is known of a table's rows and values.
type TableStats struct {
	Table          string `json:"table"`
	SnapshotID     int64  `json:"snapshot_id"`
	OverlayVersion uint64 `json:"overlay_version"` // 0: not mounted
	Files          int    `json:"files"`
	Bytes          int64  `json:"bytes"`
	// Rows is the rows in data files; Deleted of them are hidden by deletes, and Live are left. The columns speak of Rows.
	Rows    int64         `json:"rows"`
	Deleted int64         `json:"deleted"`
	Live    int64         `json:"live"`
	Columns []ColumnStats `json:"columns"`
	// Footers is how many were read to see row groups.
	Footers int `json:"footers_read"`
}

// ColumnStats is what is known of one column. What is not known is null.
type ColumnStats struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
	// Source is sketch, manifests or unknown.
	Source string `json:"source"`
	// Rows is the rows that the numbers cover, Elements for lists: their values are elements.
	Rows     int64          `json:"rows"`
	Elements *int64         `json:"elements,omitempty"`
	Nulls    *int64         `json:"nulls"`
	NaNs     *int64         `json:"nans,omitempty"`
	Distinct *Distinct      `json:"distinct"`
	Min      *string        `json:"min"` // of manifests at most the least value, Max at least the greatest
	Max      *string        `json:"max"`
	Quantile []Quantile     `json:"quantiles,omitempty"`
	Files    *Clusteredness `json:"files,omitempty"`
	Groups   *Clusteredness `json:"row_groups,omitempty"`
}

// Distinct is an estimate of distinct values with the bounds that hold with 95 % confidence.
type Distinct struct {
	Estimate int64   `json:"estimate"`
	Low      int64   `json:"low"`
	High     int64   `json:"high"`
	HLL      float64 `json:"hll"` // the same by another sketch
}

// Quantile is the value at a rank from 0 to 1.
type Quantile struct {
	Rank  float64 `json:"rank"`
	Value string  `json:"value"`
}

// Clusteredness is how well bounds separate a column's values: a test for one value keeps Kept of Of granules on average.
type Clusteredness struct {
	Of    int     `json:"of"`
	Kept  float64 `json:"kept"`
	Share float64 `json:"share"`
	// Unbounded granules state no bounds, and every test keeps them.
	Unbounded int `json:"unbounded"`
}

// shownRanks are the quantiles that Stats reports.
var shownRanks = []float64{0, 0.01, 0.25, 0.5, 0.75, 0.99, 1}

// Stats gathers what sketches, manifests and a few footers say of every column. at selects the snapshot as in Query.
func (t *Table) Stats(ctx context.Context, at string) (*TableStats, error) {
	s, x, version, err := t.statistics(ctx, at)
	if err != nil {
		return nil, err
	}
	out := &TableStats{
		Table: t.name, SnapshotID: s.ID, OverlayVersion: version, Files: s.Files.Len(), Bytes: x.Bytes, Rows: x.Rows, Footers: x.SampledFiles,
		Columns: []ColumnStats{},
	}
	if out.Deleted, err = t.deletedRows(ctx, s); err != nil {
		return nil, err
	}
	out.Live = out.Rows - out.Deleted
	for i := range x.Columns {
		out.Columns = append(out.Columns, columnStats(&x.Columns[i]))
	}
	return out, nil
}

// statistics gathers what is known of a snapshot, with the help of the overlay if there is one.
func (t *Table) statistics(ctx context.Context, at string) (*facts.Snapshot, *advise.Table, uint64, error) {
	s, err := t.snapshot(ctx, at)
	if err != nil {
		return nil, nil, 0, err
	}
	data, err := t.dataStore()
	if err != nil {
		return nil, nil, 0, err
	}
	v, err := t.current(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	number := uint64(0)
	if v != nil {
		if v, err = v.Full(ctx); err != nil {
			return nil, nil, 0, err
		}
		number = v.Number()
	}
	r := &advise.Reader{Data: data, Footers: t.client.footers}
	x, err := r.Statistics(ctx, s, v)
	return s, x, number, err
}

// deletedRows counts the rows that deletes hide in a snapshot.
func (t *Table) deletedRows(ctx context.Context, s *facts.Snapshot) (int64, error) {
	if s.Deletes.Len() == 0 {
		return 0, nil
	}
	data, err := t.dataStore()
	if err != nil {
		return 0, err
	}
	m := t.masker(data)
	m.Archive = t.archive
	total := int64(0)
	for at := 0; at < s.Files.Len(); at += maskFiles {
		files := make([]mask.File, min(maskFiles, s.Files.Len()-at))
		for i := range files {
			files[i].Ordinal = at + i
		}
		masks, _, err := m.Masks(ctx, s, files, mask.Options{})
		if err != nil {
			return total, err
		}
		for i, gone := range masks {
			total += gone.Set(uint32(s.Files.Records[at+i])).Count()
		}
	}
	return total, nil
}

func columnStats(c *advise.Column) ColumnStats {
	leaf := c.Path.Leaf()
	out := ColumnStats{
		ID: leaf.ID, Name: c.Path.Name(), Type: leaf.Type.String(), Source: string(c.Source), Rows: c.Rows,
		Nulls: known(c.Nulls), Min: shown(leaf.Type, c.Min), Max: shown(leaf.Type, c.Max),
		Files: clusteredness(c.Files), Groups: clusteredness(c.Groups),
	}
	if leaf.Type.Kind.Floating() {
		out.NaNs = known(c.NaNs)
	}
	if c.Sketch == nil {
		return out
	}
	if c.Sketch.List {
		out.Elements = known(c.Sketch.Values + c.Sketch.Nulls + c.Sketch.NaNs)
	}
	if c.Source == advise.FromSketch {
		out.Min, out.Max = quantile(leaf.Type, c.Sketch, 0), quantile(leaf.Type, c.Sketch, 1)
	}
	d := c.Sketch.Distinct
	out.Distinct = &Distinct{Estimate: rounded(d.Value), Low: rounded(d.Low), High: rounded(d.High), HLL: c.Sketch.HLL}
	for _, r := range shownRanks {
		if v := quantile(leaf.Type, c.Sketch, r); v != nil {
			out.Quantile = append(out.Quantile, Quantile{Rank: r, Value: *v})
		}
	}
	return out
}

// quantile is the value at a rank for people, with … behind one of which only the beginning is known; nil: none.
func quantile(t Type, s *sketch.Summary, rank float64) *string {
	t, key := sketched(t, s), s.At(rank)
	if s.Whole(rank) {
		return shown(t, key)
	}
	if t.Kind == column.String {
		key = wholeRunes(key)
	}
	text := shown(t, key)
	*text += "…"
	return text
}

// wholeRunes is the beginning of a text without the character that it was cut in.
func wholeRunes(key []byte) []byte {
	for n := len(key) - 1; n >= max(0, len(key)-utf8.UTFMax); n-- {
		if utf8.RuneStart(key[n]) {
			if !utf8.FullRune(key[n:]) {
				return key[:n]
			}
			break
		}
	}
	return key
}

// sketched is the type whose keys a sketch holds: that of the column, but for a decimal's scale never another.
func sketched(t column.Type, s *sketch.Summary) column.Type {
	if t.Kind == column.Decimal {
		t.Scale = int(s.Scale)
	}
	return t
}

func known(n int64) *int64 {
	if n == facts.Unknown {
		return nil
	}
	return &n
}

func rounded(x float64) int64 { return int64(x + 0.5) }

// shown is the value of a key for people; nil: none. A key that was cut shows what is left of it.
func shown(t Type, key []byte) *string {
	if key == nil {
		return nil
	}
	v, ok := column.KeyValue(t, key)
	if !ok {
		v = column.BytesValue(column.Binary, key)
	}
	text := plan.Show(v)
	return &text
}

func clusteredness(o plan.Overlap) *Clusteredness {
	if o.Granules == 0 {
		return nil
	}
	return &Clusteredness{Of: o.Granules, Kept: o.Kept, Share: o.Share(), Unbounded: o.Unbounded}
}
