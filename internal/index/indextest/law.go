package indextest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Artifact is a built index.
type Artifact struct {
	Root, Body []byte
	Reason     string // why Root is nil
}

// Body is an index.Sink in memory.
type Body struct{ bytes.Buffer }

// Offset is the bytes written.
func (b *Body) Offset() int64 { return int64(b.Len()) }

// Build builds an artifact over a column fed in random batches.
func Build(t testing.TB, r *rand.Rand, k index.Kind, c *Column, spec index.Spec, budget index.Budget) Artifact {
	t.Helper()
	a, err := TryBuild(r, k, c, spec, budget)
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	return a
}

// TryBuild is Build that returns the error.
func TryBuild(r *rand.Rand, k index.Kind, c *Column, spec index.Spec, budget index.Budget) (Artifact, error) {
	b, err := k.NewBuilder(spec, budget)
	if err != nil {
		return Artifact{}, err
	}
	defer func() { _ = b.Close() }()
	for i := 0; i < len(c.Values); {
		j := min(len(c.Values), i+1+r.IntN(len(c.Values)/3+2))
		if err := b.Add([]*column.Vector{c.Vector(r, i, j)}); err != nil {
			return Artifact{}, err
		}
		i = j
	}
	body := &Body{}
	root, reason, err := b.Finish(body)
	return Artifact{Root: root, Body: body.Bytes(), Reason: reason}, err
}

// SpecOf is a spec for n rows with random granules.
func SpecOf(r *rand.Rand, t column.Type, n int) index.Spec {
	groups, pages := Cuts(r, n)
	return index.Spec{Columns: []column.Path{Path(t)}, Rows: uint32(n), RowGroups: groups, Pages: pages}
}

// Cost is what a probe read.
type Cost struct {
	Waves int
	Units int
	Bytes int64
}

// Run feeds a probe from a body, wave by wave, and checks the protocol: spans inside the body, a sound verdict before every wave,
// nothing needed after an end.
func Run(p index.Probe, body []byte) (rowset.Verdict, Cost, error) {
	var cost Cost
	for {
		need := p.Need()
		if len(need) == 0 {
			return p.Verdict(), cost, nil
		}
		if cost.Waves++; cost.Waves > 16 {
			return p.Verdict(), cost, fmt.Errorf("no end after %d waves", cost.Waves)
		}
		data := make([][]byte, len(need))
		for i, s := range need {
			if s.Off < 0 || s.Len < 0 || s.Off+s.Len > int64(len(body)) {
				return p.Verdict(), cost, fmt.Errorf("span %+v outside a body of %d bytes", s, len(body))
			}
			data[i] = body[s.Off : s.Off+s.Len]
			cost.Units, cost.Bytes = cost.Units+1, cost.Bytes+s.Len
		}
		if err := p.Feed(data); err != nil {
			return p.Verdict(), cost, err
		}
	}
}

// Wrong tells where a verdict breaks the law for a leaf over a column, "" if nowhere.
func Wrong(leaf *predicate.Leaf, c *Column, v rowset.Verdict) string {
	if n := uint32(len(c.Values)); v.May.Size() != n || v.Must.Size() != n {
		return fmt.Sprintf("verdict over %d and %d rows of %d", v.Must.Size(), v.May.Size(), n)
	}
	for i, x := range c.Values {
		row, pass := uint32(i), false
		if x == nil {
			pass = Passes(leaf, nil)
		} else {
			w := Promote(*x, leaf.Column.Type())
			pass = Passes(leaf, &w)
		}
		if pass && !v.May.Contains(row) {
			return fmt.Sprintf("row %d matches and is ruled out", i)
		}
		if !pass && v.Must.Contains(row) {
			return fmt.Sprintf("row %d does not match and is claimed", i)
		}
	}
	return ""
}

// Describe is a leaf for failure messages.
func Describe(l *predicate.Leaf) string {
	s := fmt.Sprintf("%s op %d negated %v dialect %d values", l.Column.Type(), l.Op, l.Negated, l.Dialect)
	for _, v := range l.Values {
		if len(v.S) > 80 {
			v.S = fmt.Sprintf("%s… (%d bytes)", v.S[:80], len(v.S))
		}
		s += fmt.Sprintf(" {%#x %#x %q}", v.Hi, v.Lo, v.S)
	}
	if l.Pattern != nil {
		s += fmt.Sprintf(" pattern %q escape %q", l.Pattern.Text, l.Pattern.Escape)
	}
	if l.Regex != nil {
		s += fmt.Sprintf(" regex %q any case %v", l.Regex.Text, l.Regex.AnyCase)
	}
	return s
}
