package skomer

import (
	"context"
	"time"
)

// Description is what a table is, from its metadata alone.
type Description struct {
	Table         string            `json:"table"`
	TableUUID     string            `json:"table_uuid"`
	Location      string            `json:"location"`
	Metadata      string            `json:"metadata"` // the metadata.json that was read
	FormatVersion int               `json:"format_version"`
	SnapshotID    int64             `json:"snapshot_id"` // -1: the table is empty
	Files         int               `json:"files"`
	DeleteFiles   int               `json:"delete_files"`
	Rows          int64             `json:"rows"` // as the data files count them
	Bytes         int64             `json:"bytes"`
	Columns       []ColumnInfo      `json:"columns"`
	Partitioning  []string          `json:"partitioning"`
	Properties    map[string]string `json:"properties"`
	Snapshots     []SnapshotInfo    `json:"snapshots"`
	DataFiles     []DataFileInfo    `json:"data_files"`
}

// ColumnInfo is a column at any depth.
type ColumnInfo struct {
	ID       int    `json:"id"`
	Name     string `json:"name"` // dotted
	Type     string `json:"type"`
	Required bool   `json:"required"`
}

// SnapshotInfo is one snapshot of a table.
type SnapshotInfo struct {
	ID        int64     `json:"id"`
	Parent    int64     `json:"parent"` // -1: none
	Time      time.Time `json:"time"`
	Operation string    `json:"operation"`
	Refs      []string  `json:"refs"`
	Current   bool      `json:"current"`
}

// DataFileInfo is one data file of the snapshot.
type DataFileInfo struct {
	Path    string `json:"path"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`
}

// Describe reads the table's metadata and manifests; at selects the snapshot as in Query.
func (t *Table) Describe(ctx context.Context, at string) (*Description, error) {
	s, err := t.snapshot(ctx, at)
	if err != nil {
		return nil, err
	}
	table := t.metadata()
	d := &Description{
		Table: t.name, TableUUID: s.TableUUID, Location: s.Location, Metadata: s.MetadataPath, FormatVersion: s.FormatVersion,
		SnapshotID: s.ID, Files: s.Files.Len(), DeleteFiles: s.Deletes.Len(), Properties: s.Properties,
		Columns: []ColumnInfo{}, Partitioning: []string{}, Snapshots: []SnapshotInfo{}, DataFiles: []DataFileInfo{},
	}
	s.Schema.Walk(func(p Path) bool {
		f := p.Leaf()
		d.Columns = append(d.Columns, ColumnInfo{ID: f.ID, Name: p.Name(), Type: f.Type.String(), Required: f.Required})
		return true
	})
	for i := range s.Files.Len() {
		d.Rows += s.Files.Records[i]
		d.Bytes += s.Files.Size[i]
		d.DataFiles = append(d.DataFiles, DataFileInfo{Path: s.Files.Path[i], Records: s.Files.Records[i], Bytes: s.Files.Size[i]})
	}
	if spec := s.Specs[table.DefaultSpecID()]; spec != nil {
		for _, f := range spec.Fields {
			name := f.Name
			if p := s.Schema.ByID(f.SourceID); p != nil {
				name = p.Name()
			}
			d.Partitioning = append(d.Partitioning, f.Transform+"("+name+")")
		}
	}
	for _, x := range table.Snapshots() {
		d.Snapshots = append(d.Snapshots, SnapshotInfo{
			ID: x.ID, Parent: x.Parent, Time: time.UnixMilli(x.TimestampMs).UTC(), Operation: x.Operation, Refs: x.Refs, Current: x.Current,
		})
	}
	return d, nil
}
