// Package overlay answers: which indexes does a table have, and which artifact covers which data file, at one version?
//
// An overlay is everything derived for one table, under one prefix:
//
//	<prefix>/versions/<20 digits: MaxUint64 − version>   one object per version; creating it is the commit
//	<prefix>/chunks/<commit>-<n>                         lists of artifacts and of derived objects, shared by versions
//	<prefix>/inflight/<build id>                         builds that have begun and not yet committed
//	<prefix>/detached_catalog.json                       a readable hint at the newest version
//	<prefix>/data/…                                      bundles, named by their builders
//
// The newest version is the first key below versions/. A version is seen whole or not at all; nothing that it names is
// ever overwritten. A part that is missing, damaged or from the future is no index (a warning), never an error.
//
// The package knows neither Iceberg nor what is inside a bundle, and never touches the table.
package overlay

import (
	"reflect"

	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/store"
)

// Definition is the declaration of an index. Two definitions are the same index if they differ at most in ID, Names, KindVersion and
// CreatedVersion.
type Definition struct {
	ID             string            `json:"id"` // chosen at commit when empty; never used again after a drop
	Kind           string            `json:"kind"`
	KindVersion    int               `json:"kind_version"` // its artifacts are of this version of the kind or later
	FieldIDs       []int             `json:"field_ids"`
	Names          []string          `json:"names,omitempty"` // column names when declared: a hint for people
	Params         map[string]string `json:"params,omitempty"`
	CreatedVersion uint64            `json:"created_version"`
}

// Identity is one incarnation of a data file: what the manifest states, and the tag its build saw.
type Identity struct {
	Path    string
	Size    int64 // bytes
	Records int64
	Tag     store.Tag
}

// Artifact is one artifact to be published.
type Artifact struct {
	IndexID       string
	FormatVersion int        // of its lineage record
	Files         []Identity // of its segment, in ordinal order
	Columns       []lineage.Column
	// Body, Root and Lineage are offsets, lengths and checksums in the bundle.
	Body, Root, Lineage lineage.Place
	BodySHA256          [32]byte
	// RootInline is the root itself; the overlay keeps it where it is small enough, which saves a read.
	RootInline []byte
	// Replaces are artifacts that this one takes the place of. If one of them is no longer there, this one is discarded.
	Replaces []Key
	// WithoutDeleted tells that the build left out the rows that deletes hide, so that the artifact may cover an erased file.
	WithoutDeleted bool
}

// Key names an artifact through all versions: its bundle, and where its lineage record begins in it.
type Key struct {
	Bundle  string
	Lineage int64
}

// Build is what one build adds: the artifacts of one bundle.
type Build struct {
	ID         string
	Bundle     string // object key; never used for other bytes
	SnapshotID int64  // the table snapshot that was read
	Sequence   int64  // and its sequence number
	Artifacts  []Artifact
}

// Upstream is the state of the table that the overlay was last brought to.
type Upstream struct {
	MetadataLocation string `json:"metadata_location"`
	SnapshotID       int64  `json:"upstream_snapshot_id"` // -1: the table has no snapshot
	SequenceNumber   int64  `json:"upstream_sequence_number"`
	SchemaID         int    `json:"upstream_schema_id"`
	LastUpdatedMs    int64  `json:"upstream_last_updated_ms"` // as the metadata states it
	LastSyncMs       int64  `json:"last_sync_ms"`             // 0: never synced
	// Sources is the few files in which the table states what that snapshot holds: a hint for readers, which may ask for them early.
	Sources []string `json:"sources,omitempty"`
}

// Equal reports whether two states are the same.
func (u Upstream) Equal(other Upstream) bool { return reflect.DeepEqual(u, other) }

// Table is the table that an overlay belongs to.
type Table struct {
	UUID     string `json:"table_uuid"` // lower case; "" for v1 tables without one
	Location string `json:"location"`
	Name     string `json:"name,omitempty"` // how it was mounted: catalog.namespace.table or a URI
}
