package plan

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// metrics is what manifests count and bound of one column.
type metrics struct {
	t        column.Type
	repeats  bool
	optional bool // a struct around the column can be null, and with it the column
	records  []int64
	values   []int64 // nil: unknown for all files, as for nulls, nans, lower, upper
	nulls    []int64
	nans     []int64
	lower    [][]byte
	upper    [][]byte
}

func newMetrics(s *facts.Snapshot, c predicate.Column) metrics {
	f := &s.Files
	m := metrics{t: c.Type(), repeats: c.Path.Repeated()}
	for _, above := range c.Path[:len(c.Path)-1] {
		m.optional = m.optional || !above.Required
	}
	n := f.Len()
	m.records = full(f.Records, n)
	cf := f.Columns[c.ID()]
	if cf == nil || s.NameMapping != nil && !facts.Maps(s.NameMapping, c.ID()) {
		return m
	}
	m.values, m.nulls, m.nans = full(cf.Values, n), full(cf.Nulls, n), full(cf.NaNs, n)
	m.lower, m.upper = full(cf.Lower, n), full(cf.Upper, n)
	return m
}

// full is s if it speaks of all n files, else nil.
func full[T any](s []T, n int) []T {
	if len(s) != n {
		return nil
	}
	return s
}

func at(counts []int64, i int) int64 {
	if counts == nil {
		return facts.Unknown
	}
	return counts[i]
}

// count narrows the classes that can be present in file i.
//
// The counts of a column that is not repeated agree with the file's record count, or they are not understood: some writers
// leave out rows whose struct is null (apache/iceberg#18069), and some leave out nulls. Only a column without an optional
// struct around it may do without the value count. List elements are counted one by one and say nothing about rows.
func (m *metrics) count(i int, r *rows) {
	if m.repeats || m.nulls == nil && m.nans == nil {
		return
	}
	records, values, nulls, nans := at(m.records, i), at(m.values, i), at(m.nulls, i), at(m.nans, i)
	switch {
	case records > 0 && values == records:
		r.counted(records, nulls, nans)
	case values == facts.Unknown && !m.optional:
		r.counted(facts.Unknown, nulls, nans)
	}
}

// bounds is what is stated of the least and greatest ordinary value in file i.
func (m *metrics) bounds(i int) (lower, upper []byte) {
	if m.lower != nil {
		lower = m.lower[i]
	}
	if m.upper != nil {
		upper = m.upper[i]
	}
	return lower, upper
}
