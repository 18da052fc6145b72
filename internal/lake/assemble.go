package lake

import (
	"bytes"
	"maps"
	"math"
	"slices"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/manifest"
	"github.com/skomerdb/skomer/internal/lake/meta"
)

// assembly joins the manifests of a snapshot into its facts: inheritance, location mapping, partition types.
type assembly struct {
	t     *Table
	out   *facts.Snapshot
	ids   []int // schema fields whose metrics are wanted; nil: all that the manifests hold
	names bool  // paths are wanted
	total int   // data files to come
	buf   []byte
}

func newAssembly(t *Table, out *facts.Snapshot, total int) *assembly {
	f := &out.Files
	f.Path, f.Stated = make([]string, 0, total), make([]string, 0, total)
	f.Format, f.Size, f.Records = make([]facts.Format, 0, total), make([]int64, 0, total), make([]int64, 0, total)
	f.SpecID, f.Sequence, f.FirstRowID = make([]int32, 0, total), make([]int64, 0, total), make([]int64, 0, total)
	f.Snapshot, f.Encrypted, f.Manifest = make([]int64, 0, total), make([]bool, 0, total), make([]int32, 0, total)
	f.Partition, f.Columns = map[int]*facts.PartitionColumn{}, map[int]*facts.ColumnFacts{}
	return &assembly{t: t, out: out, names: true, total: total}
}

// dataFiles is how many files of a manifest hold data.
func dataFiles(m *manifest.Manifest) (n int) {
	for i := range m.N {
		if m.Content.At(i) == int64(manifest.Data) {
			n++
		}
	}
	return n
}

// run adds every file of every part.
func (a *assembly) run(parts []*part) error {
	for _, p := range parts {
		rows, err := a.addDeletes(p)
		if err != nil {
			return err
		}
		if err := a.addFiles(p, rows); err != nil {
			return err
		}
	}
	a.square()
	return nil
}

// square makes every partition column as long as the files.
func (a *assembly) square() {
	for _, col := range a.out.Files.Partition {
		growPartition(col, a.out.Files.Len())
	}
}

// addDeletes adds the delete files of a part and returns which of its entries are data files.
func (a *assembly) addDeletes(p *part) (data []int32, err error) {
	for i := range p.m.N {
		if p.m.Content.At(i) == int64(manifest.Data) {
			data = append(data, int32(i))
			continue
		}
		spec, err := a.spec(p)
		if err != nil {
			return nil, err
		}
		values, err := a.tuplesOf(p, spec).scope(p, i)
		if err != nil {
			return nil, err
		}
		a.addDelete(p, spec, i, values)
	}
	if len(data) > 0 && (p.m.Deletes || p.listed.Deletes) {
		return nil, fault.New(fault.Corrupt, p.path, "a manifest of deletes holds the data file %s", p.m.Path.At(int(data[0])))
	}
	return data, nil
}

// addFiles adds data files of a part, by their places among its entries in ascending order.
func (a *assembly) addFiles(p *part, rows []int32) error {
	if len(rows) == 0 {
		return nil
	}
	spec, err := a.spec(p)
	if err != nil {
		return err
	}
	a.out.Files.Manifests = append(a.out.Files.Manifests, p.path)
	first, err := firstRows(p)
	if err != nil {
		return err
	}
	tuples := a.tuplesOf(p, spec)
	at := a.out.Files.Len()
	for _, i := range rows {
		row := p.m.FirstRow.At(int(i))
		if first != nil {
			row = first[i]
		}
		a.addFile(p, spec, int(i), row)
		a.partition(tuples, int(p.m.Tuple.At(int(i))))
	}
	a.columns(p, rows, at)
	return nil
}

// firstRows is the first row id of every entry of a part (specification, "First Row ID Inheritance"): data files that state
// none follow each other from the manifest's on. Nil if the manifest has none to inherit.
func firstRows(p *part) ([]int64, error) {
	next := p.listed.FirstRowID
	if next == facts.Unknown {
		return nil, nil
	}
	out := make([]int64, p.m.N)
	for i := range out {
		out[i] = p.m.FirstRow.At(i)
		if out[i] != facts.Unknown || p.m.Content.At(i) != int64(manifest.Data) {
			continue
		}
		n := p.m.Records.At(i)
		if n > math.MaxInt64-next {
			return nil, fault.New(fault.Corrupt, p.path, "row ids run over at %s", p.m.Path.At(i))
		}
		out[i], next = next, next+n
	}
	return out, nil
}

// sequence is the data sequence number (specification, "Sequence Number Inheritance"): what v1 wrote reads as 0, added
// files inherit the manifest's, and an existing file that states none in a later manifest was carried over from v1.
func sequence(p *part, i int) int64 {
	switch n := p.m.Sequence.At(i); {
	case n != facts.Unknown:
		return n
	case p.m.Added.At(i) == 1:
		return p.listed.Sequence
	default:
		return 0
	}
}

func addedBy(p *part, i int) int64 {
	if n := p.m.SnapshotID.At(i); n != facts.Unknown {
		return n
	}
	return p.listed.SnapshotID
}

// location is a path as stated and after mapping. They share memory where they are equal.
func (a *assembly) location(p *part, i int) (path, stated string) {
	a.buf = p.m.Path.Append(a.buf[:0], i)
	stated = string(a.buf)
	return a.t.lake.mapping.Apply(stated), stated
}

func (a *assembly) addFile(p *part, spec *facts.Spec, i int, firstRow int64) {
	f := &a.out.Files
	path, stated := "", ""
	if a.names {
		path, stated = a.location(p, i)
	}
	f.Path = append(f.Path, path)
	f.Stated = append(f.Stated, stated)
	f.Format = append(f.Format, facts.Format(p.m.Format.At(i)))
	f.Size = append(f.Size, p.m.Size.At(i))
	f.Records = append(f.Records, p.m.Records.At(i))
	f.SpecID = append(f.SpecID, int32(spec.ID))
	f.Sequence = append(f.Sequence, sequence(p, i))
	f.FirstRowID = append(f.FirstRowID, firstRow)
	f.Snapshot = append(f.Snapshot, addedBy(p, i))
	f.Encrypted = append(f.Encrypted, p.m.Encrypted.At(i) == 1)
	f.Manifest = append(f.Manifest, int32(len(f.Manifests)-1))
}

func (a *assembly) addDelete(p *part, spec *facts.Spec, i int, tuple []facts.PartitionValue) {
	d, format := &a.out.Deletes, facts.Format(p.m.Format.At(i))
	kind := facts.PositionDeletes
	switch {
	case p.m.Content.At(i) == int64(manifest.EqualityDeletes):
		kind = facts.EqualityDeletes
	case format == facts.Puffin:
		kind = facts.DeletionVector
	}
	path, stated := a.location(p, i)
	d.Kind = append(d.Kind, kind)
	d.Path = append(d.Path, path)
	d.Stated = append(d.Stated, stated)
	d.Format = append(d.Format, format)
	d.Size = append(d.Size, p.m.Size.At(i))
	d.Records = append(d.Records, p.m.Records.At(i))
	d.SpecID = append(d.SpecID, int32(spec.ID))
	d.Partition = append(d.Partition, tuple)
	d.Sequence = append(d.Sequence, sequence(p, i))
	d.FieldIDs = append(d.FieldIDs, p.m.EqualityIDs[p.m.Equality.At(i)])
	d.Encrypted = append(d.Encrypted, p.m.Encrypted.At(i) == 1)
	d.Referenced = append(d.Referenced, referenced(p, i, kind))
	d.Offset = append(d.Offset, p.m.Offset.At(i))
	d.Length = append(d.Length, p.m.Length.At(i))
}

// filePathID is the reserved field id of the paths in position delete files.
const filePathID = 2147483546

// referenced is the one data file that a delete file is about, if the manifest says so: by name, or for position deletes by
// equal bounds of their paths (which truncation would have made unequal).
func referenced(p *part, i int, kind facts.DeleteKind) string {
	if name := p.m.Referenced.At(i); name != "" || kind != facts.PositionDeletes {
		return name
	}
	if c := p.m.Columns[filePathID]; c != nil && len(c.LowerAt(i)) > 0 && bytes.Equal(c.LowerAt(i), c.UpperAt(i)) {
		return string(c.LowerAt(i))
	}
	return ""
}

// spec is the partition spec of a manifest: the table's, else the one in the manifest's own header.
func (a *assembly) spec(p *part) (*facts.Spec, error) {
	id := int(p.listed.SpecID)
	if id == specFromHeader {
		if id = p.m.SpecID; id < 0 {
			id = a.t.meta.DefaultSpec
		}
	}
	if s := a.out.Specs[id]; s != nil {
		return s, nil
	}
	if len(p.m.SpecJSON) == 0 || (p.m.SpecID >= 0 && p.m.SpecID != id) {
		return nil, fault.New(fault.Corrupt, p.path, "its partition spec %d is unknown to the table", id)
	}
	s, err := meta.ParseSpecFields(p.path, id, p.m.SpecJSON)
	if err != nil {
		return nil, err
	}
	a.out.Specs = maps.Clone(a.out.Specs)
	a.out.Specs[id] = s
	return s, nil
}

// columns copies the metrics of data files of p, the first of which is file at of out.
func (a *assembly) columns(p *part, rows []int32, at int) {
	for id, bytes := range p.m.Stored {
		if a.out.Files.Stored == nil {
			a.out.Files.Stored = map[int]float64{}
		}
		a.out.Files.Stored[id] += float64(bytes)
	}
	for id, from := range p.m.Columns {
		if from == nil || a.ids != nil && !slices.Contains(a.ids, id) {
			continue
		}
		to := a.out.Files.Columns[id]
		if to == nil {
			to = unknownColumn(a.total)
			a.out.Files.Columns[id] = to
		}
		for k, row := range rows {
			i, n := int(row), at+k
			to.Lower[n], to.Upper[n] = from.LowerAt(i), from.UpperAt(i)
			to.Values[n], to.Nulls[n], to.NaNs[n] = from.Values.At(i), from.Nulls.At(i), from.NaNs.At(i)
		}
	}
}

// unknownColumn is the metrics of a column over n files that state nothing.
func unknownColumn(n int) *facts.ColumnFacts {
	counts := make([]int64, 3*n)
	for i := range counts {
		counts[i] = facts.Unknown
	}
	bounds := make([][]byte, 2*n)
	return &facts.ColumnFacts{
		Lower: bounds[:n:n], Upper: bounds[n:], Values: counts[:n:n], Nulls: counts[n : 2*n : 2*n], NaNs: counts[2*n:],
	}
}
