package filemap

import (
	"encoding/json"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
)

// An overlay lists a run as a derived object of kind Kind, the root, with Meta beside it, and the objects that hold leaves alone as
// derived objects of kind PartKind.
const (
	Kind     = "filemap"
	PartKind = "filemap.part"
	// RootType and LeavesType are the types of the Puffin blobs.
	RootType   = "skomer.filemap.root.v1"
	LeavesType = "skomer.filemap.v1"
)

// Meta is what an overlay tells of a run without reading it: from what it was built, where its leaves are, and which of its
// files it may no longer speak for.
type Meta struct {
	FormatVersion int              `json:"format_version"` // of lineage
	TableUUID     string           `json:"table_uuid"`
	SnapshotID    int64            `json:"snapshot_id"` // the newest one that was read
	Sequence      int64            `json:"sequence"`
	Columns       []lineage.Column `json:"columns"`
	Objects       []Object         `json:"objects"`
	Keys          uint64           `json:"keys"`
	Files         int              `json:"files"`
	// Values is how many values the value map holds; nil: the run has none.
	Values *int `json:"values,omitempty"`
	// Root is the root itself where it has at most MaxRootInline bytes; empty: it is read.
	Root []byte `json:"root,omitempty"`
	// Layouts is where the layouts of the files are, in the object of the root; nil: the run has none.
	Layouts *Stored `json:"layouts,omitempty"`
	// Invalid is the slots of files that were overwritten since, ascending: the run does not cover them.
	Invalid []uint32 `json:"invalid,omitempty"`
}

// MaxRootInline is the bytes of the longest root that a Meta holds.
const MaxRootInline = 12 << 10

// Object is where leaves of a run lie.
type Object struct {
	Key string `json:"key"` // below the overlay's prefix
	Off int64  `json:"off"` // of the first leaf
}

// Stored is where a part of a run lies, and the CRC32C of its bytes.
type Stored struct {
	Off int64  `json:"off"`
	Len int64  `json:"len"`
	CRC uint32 `json:"crc"`
}

// ParseMeta reads a Meta; what makes no sense is a Corrupt fault.
func ParseMeta(name string, raw []byte) (*Meta, error) {
	m := &Meta{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fault.Wrap(fault.Corrupt, name, err)
	}
	if len(m.Columns) != 1 || len(m.Objects) == 0 || len(m.Objects) > maxObjects || m.Files < 0 || m.Files > maxFiles {
		return nil, fault.New(fault.Corrupt, name, "%d columns, %d objects and %d files", len(m.Columns), len(m.Objects), m.Files)
	}
	if l := m.Layouts; l != nil && (l.Off < 0 || l.Len <= 0 || l.Len > maxLayouts) {
		return nil, fault.New(fault.Corrupt, name, "layouts of %d bytes at %d", l.Len, l.Off)
	}
	for _, o := range m.Objects {
		if o.Key == "" || o.Off < 0 {
			return nil, fault.New(fault.Corrupt, name, "leaves at %d of %q", o.Off, o.Key)
		}
	}
	return m, nil
}

// Describe enters what the root says of the run.
func (m *Meta) Describe(x *Run) {
	m.Keys, m.Files, m.Values = x.Keys, len(x.Files), nil
	if x.HasValues {
		m.Values = &x.Values
	}
}

// Claim is what the lineage check wants to know of a run. Rows are checked per file: runs number none across files.
func (m *Meta) Claim(name string) lineage.Claim {
	return lineage.Claim{
		Index: name, FormatVersion: m.FormatVersion, TableUUID: m.TableUUID, SnapshotID: m.SnapshotID, SequenceNumber: m.Sequence,
	}
}

// OpenLayouts opens the layouts that lie at the meta's place.
func (m *Meta) OpenLayouts(name string, raw []byte) (*Layouts, error) {
	if err := bytescan.CheckCRC(name, raw, m.Layouts.CRC); err != nil {
		return nil, err
	}
	l, err := OpenLayouts(raw, m.Files)
	return l, fault.About(name, err)
}

// OpenChecked opens a root that must have the checksum and fit the meta.
func (m *Meta) OpenChecked(name string, root []byte, crc uint32) (*Run, error) {
	if err := bytescan.CheckCRC(name, root, crc); err != nil {
		return nil, err
	}
	r, err := Open(root)
	if err != nil {
		return nil, fault.About(name, err)
	}
	if len(r.Files) != m.Files || len(r.objects) != len(m.Objects) {
		return nil, fault.New(fault.Corrupt, name, "%d files in %d objects, the overlay says %d in %d", len(r.Files), len(r.objects), m.Files, len(m.Objects))
	}
	return r, nil
}
