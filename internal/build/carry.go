package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Carried is an artifact of files that left the table. A unit whose files hold the same values in the same order, one such artifact
// after the other in any order, takes them over: that is proven by the hashes of their blocks while the indexed columns are read, and
// then the artifacts are merged. Where it is not proven, or the kind cannot merge, nothing is taken over.
type Carried struct {
	Record *lineage.Record
	Rows   uint32 // of its segment, above 0
	// Partial: some of its files are still in the table. Only rows that are known by their ids are taken from it.
	Partial bool
	// Open gives its verified root and body.
	Open func(context.Context) (index.Source, io.Closer, error)
}

// blocks is the number of rows of each block that the record has hashes of.
func (c *Carried) blocks() []uint32 {
	if c.Record.BlockRows != nil {
		return c.Record.BlockRows
	}
	var out []uint32
	for left := c.Rows; left > 0; left -= out[len(out)-1] {
		out = append(out, min(left, blockRows))
	}
	return out
}

// provable tells whether the artifact has hashes of all its rows and was made as a build now would make it of columns found so.
func (c *Carried) provable(x Index, cols []lineage.Column) bool {
	if c.Partial || !c.similar(x, cols) || len(c.Record.BlockHashes) != len(cols) {
		return false
	}
	blocks, rows := c.blocks(), uint64(0)
	for _, n := range blocks {
		rows += uint64(n)
	}
	for _, h := range c.Record.BlockHashes {
		if len(h) != len(blocks) || slices.Contains(h, "") {
			return false
		}
	}
	return rows == uint64(c.Rows) && !slices.Contains(blocks, 0)
}

// similar tells whether the artifact was made as a build now would make it of columns found so.
func (c *Carried) similar(x Index, cols []lineage.Column) bool {
	if c.Record.Algorithm != x.Kind.Algorithm() || len(c.Record.Columns) != len(cols) {
		return false
	}
	for i, now := range cols {
		was := c.Record.Columns[i]
		if was.FieldID != now.FieldID || was.Type != now.Type || was.Encoding != now.Encoding || was.Absent != now.Absent {
			return false
		}
	}
	return true
}

// alike is similar where no values will be compared: a value that a file's partition gives is not known to be the same.
func (c *Carried) alike(x Index, cols []lineage.Column) bool {
	for _, now := range cols {
		if now.Absent == absentPartition {
			return false
		}
	}
	return c.similar(x, cols)
}

// errNotCarried ends an attempt at a unit of which nothing can be taken over.
var errNotCarried = errors.New("nothing can be carried over")

// notCarried is the reason of an artifact that has to be built.
const notCarried = "not carried over"

// carrier stands for the builder of an artifact that may be taken over.
type carrier struct {
	matcher
	ctx    context.Context //nolint:containedctx // builders have none, and a carrier reads when it finishes
	index  Index
	spec   index.Spec
	budget index.Budget
	count  index.RowCount
}

func newCarrier(ctx context.Context, x Index, spec index.Spec, budget index.Budget, cols []lineage.Column, carried []*Carried) (*carrier, error) {
	c := &carrier{ctx: ctx, index: x, spec: spec, budget: budget, count: index.RowCount{Want: spec.Rows}}
	for _, path := range x.Columns {
		h, err := newColumnHash(path)
		if err != nil {
			return nil, err
		}
		h.follow = true
		c.hashes = append(c.hashes, h)
	}
	for _, s := range carried {
		if s.provable(x, cols) {
			c.sources = append(c.sources, s)
		}
	}
	c.used = make([]bool, len(c.sources))
	c.failed = len(c.sources) == 0
	return c, nil
}

// Add implements index.Builder.
func (c *carrier) Add(cols []*column.Vector) error {
	if err := c.count.Add(cols[0].Len); err != nil || c.failed {
		return err
	}
	return c.match(cols)
}

// Finish implements index.Builder.
func (c *carrier) Finish(body index.Sink) ([]byte, string, error) {
	if err := c.count.Done(); err != nil {
		return nil, "", err
	}
	if c.failed || c.row != c.start || len(c.order) == 0 {
		return nil, notCarried, nil
	}
	rows, sources := make([]uint32, len(c.order)), make([]index.Source, len(c.order))
	for i, k := range c.order {
		src, closer, err := c.sources[k].Open(c.ctx)
		if err != nil {
			if permanent(err) {
				return nil, notCarried, nil
			}
			return nil, "", err
		}
		defer closer.Close()
		rows[i], sources[i] = c.sources[k].Rows, src
	}
	ordinals, at := index.NewOrdinalMap(rows), uint32(0)
	for i, n := range rows {
		ordinals.Move(i, rowset.Range{End: n}, at)
		at += n
	}
	if at != c.spec.Rows {
		return nil, notCarried, nil
	}
	if err := ordinals.Seal(at); err != nil {
		return nil, "", err
	}
	root, _, err := c.index.Kind.Kind.Merge(c.spec, sources, ordinals, c.budget, body)
	if unmerged(root, err) {
		return nil, notCarried, nil
	}
	return root, "", err
}

// unmerged reports whether artifacts could not be merged, or cannot be read: damaged ones, and those of a later format.
func unmerged(root []byte, err error) bool {
	return root == nil && err == nil || fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Unsupported)
}

// Close implements index.Builder.
func (c *carrier) Close() error { return nil }

// matcher finds out whether rows are those of sources, one whole source after the other.
type matcher struct {
	sources []*Carried
	hashes  []*columnHash // one a column; they only write the rows
	used    []bool
	order   []int // sources in the order of the rows
	failed  bool

	row, start uint32 // the next row, and where the source at hand began
	alive      []follower
	sums       map[uint32][]hash.Hash // by the row that blocks began at: one a column
}

// follower is a source that the rows since start may be.
type follower struct {
	source, block int
	from, end     uint32 // rows of its block at hand
}

// match takes the next rows.
func (m *matcher) match(cols []*column.Vector) error {
	for k, h := range m.hashes {
		h.buf, h.ends = h.buf[:0], h.ends[:0]
		if err := h.add(cols[k]); err != nil {
			return err
		}
	}
	for i, n := 0, cols[0].Len; i < n && !m.failed; {
		if len(m.alive) == 0 {
			if m.begin(); m.failed {
				return nil
			}
		}
		run := uint32(n - i)
		for _, f := range m.alive {
			run = min(run, f.end-m.row)
		}
		for k, h := range m.hashes {
			from := 0
			if i > 0 {
				from = h.ends[i-1]
			}
			for _, sums := range m.sums {
				sums[k].Write(h.buf[from:h.ends[i+int(run)-1]])
			}
		}
		m.row, i = m.row+run, i+int(run)
		m.cut()
	}
	return nil
}

// begin starts a source: every one that is left may be it.
func (m *matcher) begin() {
	m.sums = map[uint32][]hash.Hash{}
	for s, c := range m.sources {
		if !m.used[s] {
			m.alive = append(m.alive, follower{source: s, from: m.row, end: m.row + c.blocks()[0]})
		}
	}
	m.failed = len(m.alive) == 0
	m.sums[m.row] = m.newSums()
}

func (m *matcher) newSums() []hash.Hash {
	out := make([]hash.Hash, len(m.hashes))
	for k := range out {
		out[k] = sha256.New()
	}
	return out
}

// cut compares the blocks that end here. The first source that is complete is taken; its rows are its values, whichever else they
// might have been the beginning of.
func (m *matcher) cut() {
	kept := m.alive[:0]
	for _, f := range m.alive {
		if f.end != m.row {
			kept = append(kept, f)
			continue
		}
		c := m.sources[f.source]
		if !m.equal(c, f) {
			continue
		}
		if f.block++; f.block == len(c.blocks()) {
			m.order, m.used[f.source], m.start, m.alive = append(m.order, f.source), true, m.row, nil
			return
		}
		f.from, f.end = m.row, m.row+c.blocks()[f.block]
		kept = append(kept, f)
	}
	m.alive = kept
	m.failed = len(kept) == 0
	for from := range m.sums {
		if !slices.ContainsFunc(kept, func(f follower) bool { return f.from == from }) {
			delete(m.sums, from)
		}
	}
	if slices.ContainsFunc(kept, func(f follower) bool { return f.from == m.row }) && m.sums[m.row] == nil {
		m.sums[m.row] = m.newSums()
	}
}

// equal tells whether a block has the recorded hash in every column.
func (m *matcher) equal(c *Carried, f follower) bool {
	for k, sum := range m.sums[f.from] {
		if hex.EncodeToString(sum.Sum(nil)[:16]) != c.Record.BlockHashes[k][f.block] {
			return false
		}
	}
	return true
}
