package lake

import (
	"bytes"
	"maps"
	"math"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/manifest"
	"github.com/skomerdb/skomer/internal/lake/meta"
)

// assembly joins the manifests of a snapshot into its facts: inheritance, location mapping, partition types.
type assembly struct {
	t     *Table
	out   *facts.Snapshot
	types map[int]column.Type // result type by partition field id
	total int                 // data files of the snapshot
}

func newAssembly(t *Table, out *facts.Snapshot, parts []part) *assembly {
	n := 0
	for _, p := range parts {
		for i := range p.m.Files {
			if p.m.Files[i].Content == manifest.Data {
				n++
			}
		}
	}
	f := &out.Files
	f.Path, f.Stated = make([]string, 0, n), make([]string, 0, n)
	f.Format, f.Size, f.Records = make([]facts.Format, 0, n), make([]int64, 0, n), make([]int64, 0, n)
	f.SpecID, f.Sequence, f.FirstRowID = make([]int32, 0, n), make([]int64, 0, n), make([]int64, 0, n)
	f.Snapshot, f.Encrypted, f.Manifest = make([]int64, 0, n), make([]bool, 0, n), make([]int32, 0, n)
	f.Partition, f.Columns = map[int]*facts.PartitionColumn{}, map[int]*facts.ColumnFacts{}
	return &assembly{t: t, out: out, types: map[int]column.Type{}, total: n}
}

func (a *assembly) run(parts []part) error {
	for i := range parts {
		if err := a.add(&parts[i]); err != nil {
			return err
		}
	}
	for _, col := range a.out.Files.Partition {
		growPartition(col, a.total)
	}
	return nil
}

func (a *assembly) add(p *part) error {
	spec, err := a.spec(p)
	if err != nil {
		return err
	}
	tuple := a.tupleOf(p, spec)
	next := p.listed.FirstRowID
	isData := false
	for i := range p.m.Files {
		f := &p.m.Files[i]
		if f.Content != manifest.Data {
			values, err := tuple.values(p, f)
			if err != nil {
				return err
			}
			a.addDelete(p, spec, i, values)
			continue
		}
		if p.m.Deletes || p.listed.Deletes {
			return fault.New(fault.Corrupt, p.path, "a manifest of deletes holds the data file %s", f.Path)
		}
		if !isData {
			isData = true
			a.out.Files.Manifests = append(a.out.Files.Manifests, p.path)
		}
		row := f.FirstRowID
		if row == facts.Unknown && next != facts.Unknown {
			if row = next; f.Records > math.MaxInt64-next {
				return fault.New(fault.Corrupt, p.path, "row ids run over at %s", f.Path)
			}
			next += f.Records
		}
		a.addFile(p, spec, f, row)
		a.partition(tuple, f)
	}
	if isData {
		a.columns(p)
	}
	return nil
}

// sequence is the data sequence number (specification, "Sequence Number Inheritance"): what v1 wrote reads as 0, added
// files inherit the manifest's, and an existing file that states none in a later manifest was carried over from v1.
func sequence(p *part, f *manifest.File) int64 {
	switch {
	case f.Sequence != facts.Unknown:
		return f.Sequence
	case f.Added:
		return p.listed.Sequence
	default:
		return 0
	}
}

func addedBy(p *part, f *manifest.File) int64 {
	if f.SnapshotID != facts.Unknown {
		return f.SnapshotID
	}
	return p.listed.SnapshotID
}

func (a *assembly) addFile(p *part, spec *facts.Spec, m *manifest.File, firstRow int64) {
	f := &a.out.Files
	f.Path = append(f.Path, a.t.lake.mapping.Apply(m.Path))
	f.Stated = append(f.Stated, m.Path)
	f.Format = append(f.Format, m.Format)
	f.Size = append(f.Size, m.Size)
	f.Records = append(f.Records, m.Records)
	f.SpecID = append(f.SpecID, int32(spec.ID))
	f.Sequence = append(f.Sequence, sequence(p, m))
	f.FirstRowID = append(f.FirstRowID, firstRow)
	f.Snapshot = append(f.Snapshot, addedBy(p, m))
	f.Encrypted = append(f.Encrypted, m.Encrypted)
	f.Manifest = append(f.Manifest, int32(len(f.Manifests)-1))
}

func (a *assembly) addDelete(p *part, spec *facts.Spec, i int, tuple []facts.PartitionValue) {
	d, m := &a.out.Deletes, &p.m.Files[i]
	kind := facts.PositionDeletes
	switch {
	case m.Content == manifest.EqualityDeletes:
		kind = facts.EqualityDeletes
	case m.Format == facts.Puffin:
		kind = facts.DeletionVector
	}
	d.Kind = append(d.Kind, kind)
	d.Path = append(d.Path, a.t.lake.mapping.Apply(m.Path))
	d.Stated = append(d.Stated, m.Path)
	d.Format = append(d.Format, m.Format)
	d.Size = append(d.Size, m.Size)
	d.Records = append(d.Records, m.Records)
	d.SpecID = append(d.SpecID, int32(spec.ID))
	d.Partition = append(d.Partition, tuple)
	d.Sequence = append(d.Sequence, sequence(p, m))
	d.FieldIDs = append(d.FieldIDs, m.EqualityID)
	d.Encrypted = append(d.Encrypted, m.Encrypted)
	d.Referenced = append(d.Referenced, referenced(p, i, kind))
	d.Offset = append(d.Offset, m.Offset)
	d.Length = append(d.Length, m.Length)
}

// filePathID is the reserved field id of the paths in position delete files.
const filePathID = 2147483546

// referenced is the one data file that a delete file is about, if the manifest says so: by name, or for position deletes by
// equal bounds of their paths (which truncation would have made unequal).
func referenced(p *part, i int, kind facts.DeleteKind) string {
	if name := p.m.Files[i].Referenced; name != "" || kind != facts.PositionDeletes {
		return name
	}
	if c := p.m.Columns[filePathID]; c != nil && len(c.Lower[i]) > 0 && bytes.Equal(c.Lower[i], c.Upper[i]) {
		return string(c.Lower[i])
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

// columns copies the metrics of the data files of p, whose rows are the last of out.
func (a *assembly) columns(p *part) {
	data := 0
	for i := range p.m.Files {
		if p.m.Files[i].Content == manifest.Data {
			data++
		}
	}
	first := a.out.Files.Len() - data
	for id, from := range p.m.Columns {
		to := a.out.Files.Columns[id]
		if to == nil {
			to = unknownColumn(a.total)
			a.out.Files.Columns[id] = to
		}
		row := first
		for i := range p.m.Files {
			if p.m.Files[i].Content != manifest.Data {
				continue
			}
			to.Lower[row], to.Upper[row] = from.Lower[i], from.Upper[i]
			to.Values[row], to.Nulls[row], to.NaNs[row] = from.Values[i], from.Nulls[i], from.NaNs[i]
			row++
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
