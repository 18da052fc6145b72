// Package skomer is the public Go API: open an Iceberg table that somebody else owns, mount an overlay of derived indexes
// beside it, and answer selective filters by reading a small part of the data.
//
//	client, err := skomer.New(skomer.Config{OverlayRoot: "/var/lib/skomer"})
//	table, err := client.Open(ctx, "/lake/web/events")
//	err = table.Mount(ctx)
//	_, err = table.AddIndex(ctx, "bloom(user_id)")
//	_, err = table.Sync(ctx, skomer.SyncOptions{})
//	rows, err := table.Query(ctx, skomer.Query{Where: "user_id = 42", Select: []string{"url"}})
//
// Indexes are disposable: without them every answer is the same, only the cost changes. The package wires the rooms below
// internal/ together and holds no logic of its own.
package skomer

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/lake"
)

// What query results are made of, in Arrow's memory layout.
type (
	// Vector is a run of values of one column.
	Vector = column.Vector
	// Batch is some rows of all columns of an answer.
	Batch = column.Batch
	// Type is an Iceberg type.
	Type = column.Type
	// Field is a column or a nested field.
	Field = column.Field
	// Value is one value.
	Value = column.Value
	// Path is the fields from a top-level column down to a nested one.
	Path = column.Path
)

// Mapping replaces the prefix From of every path that a table's metadata states by To, for tables that were copied or are
// reached by another name. The longest matching From wins.
type Mapping struct{ From, To string }

// Config says where things are. The zero value works for local tables.
type Config struct {
	// Catalogs holds PyIceberg's keys by catalog name; DefaultCatalog is used for names of the form namespace.table.
	Catalogs       map[string]map[string]string
	DefaultCatalog string
	// OverlayRoot holds one folder per table UUID. Empty: the user's data directory.
	OverlayRoot string
	// OverlayStore is the identity that reaches overlays in object stores, by the keys that catalogs have (s3.endpoint,
	// s3.access-key-id, …). Empty: overlays are reached as their tables are.
	OverlayStore map[string]string
	// OverlayKey, of 32 characters or more, signs overlays: one that is not signed with it gives no answer. Empty: whoever can write an
	// overlay is trusted.
	OverlayKey string
	// CacheBytes bounds the memory for index and metadata bytes; 0: 256 MiB. A quarter holds decoded manifests, for each open
	// table and each store of overlays its own; the tables of a client share the rest.
	CacheBytes int64
	// Memory bounds what a query or build holds beside the caches; 0: 1 GiB.
	Memory int64
	// Workers is the number of goroutines that decode; 0: one a core.
	Workers int
	// MaxStaleness is how old the known snapshot and overlay version may be when a query starts; 0: 5 s.
	MaxStaleness time.Duration
	// OverlayWait is how long a query waits for the first answer of an overlay's object store before it goes on as a scan; it does not ask again
	// for MaxStaleness then. 0: 2 s; negative: as long as the store is tried.
	OverlayWait time.Duration
	// MinPlannedScanBytes and MinPlannedFiles: a query whose files left after pruning hold fewer bytes and are no more than
	// so many is scanned without asking an index. Defaults (0): 256 KiB and 1; negative: always ask.
	MinPlannedScanBytes int64
	MinPlannedFiles     int
	// MinSelectivity: a query of which sketches expect more than this share of the rows (0 to 1) to match is scanned without asking an
	// index, and one index is left alone where asking it is expected to cost more than it saves. Default (0): 0.5; negative: always ask.
	MinSelectivity float64
	// Metrics is where the client's metrics are registered, under the names of docs/operations.md; nil: nowhere.
	Metrics prometheus.Registerer
	// Log takes warnings and errors that no caller gets, such as rejected indexes and shadow checks that differed; at level info also what
	// syncs publish, at debug their declarations and builds, and what vacuums delete. nil: nobody.
	Log *slog.Logger
	// ShadowShare is the share of queries, 0 to 1, that are run again as scans in the background; a kind whose answer differed is
	// quarantined. A check scans at most about ShadowBytes of data files, chosen at random; 0: 256 MiB.
	ShadowShare float64
	ShadowBytes int64

	// resolveData and resolveOverlay replace the stores; nil: by scheme.
	resolveData, resolveOverlay lake.Resolver
	selectFrom                  int              // see defaultSelectFrom
	now                         func() time.Time // that records and lags are counted by; nil: the system's clock
	wholeUpTo                   int              // see overlay.Options
}

// TableOptions says how to reach one table.
type TableOptions struct {
	Map     []Mapping
	Overlay string // URI of the overlay; empty: <OverlayRoot>/<table uuid>
}

// Query is one filter query.
type Query struct {
	// Where is a predicate in SQL text, or Filter one in Iceberg expression JSON; both empty: every row.
	Where  string
	Filter []byte
	// Select is the dotted names of the columns to return, in this order; empty: all top-level columns. _file and _pos are
	// the data file's path and the row's position in it, _row_id and _last_updated_sequence_number the row lineage of v3
	// tables (null in others).
	Select []string
	// Limit is the first N rows by (file path, position); negative: no limit.
	Limit int64
	// At is a snapshot id, an RFC 3339 time, a branch or a tag; empty: the current snapshot.
	At string
	// NoIndex switches index evidence off; NoPrune every kind of skipping.
	NoIndex, NoPrune bool
	// Strict checks the entity tag of every file left after Iceberg's own pruning before index evidence counts.
	// Of local files it also hashes footer and indexed columns: tags can be restored there.
	Strict bool
}

// Stats is what an answer cost.
type Stats struct {
	FilesTotal     int              `json:"files_total"`
	FilesLeft      int              `json:"files_left"` // by the plan; FilesOpened is fewer where their rows need not be read
	FilesOpened    int              `json:"files_opened"`
	RowGroups      int              `json:"row_groups"`
	Pages          int              `json:"pages"`
	DeleteFiles    int              `json:"delete_files"` // delete files and vectors read; those in memory cost nothing
	Requests       int64            `json:"requests"`
	Bytes          int64            `json:"bytes"`
	Waves          int64            `json:"waves"`
	Hedges         int64            `json:"hedges,omitempty"` // reads sent once more because they were slow; among the requests
	IndexesUsed    []string         `json:"indexes_used"`
	IndexesMissing []string         `json:"indexes_missing"` // indexes that would help and do not cover every file
	Rejected       map[string]int64 `json:"rejected"`        // artifacts not believed, by reason
	Warnings       []string         `json:"warnings,omitempty"`
	Rows           int64            `json:"rows"`
	SnapshotID     int64            `json:"snapshot_id"`
	OverlayVersion uint64           `json:"overlay_version"`
	Seconds        float64          `json:"seconds"`
}

// Index is a declared index.
type Index struct {
	ID      string   `json:"id"`
	Expr    string   `json:"expr"` // as typed again: kind(columns) key=value
	Kind    string   `json:"kind"`
	Columns []string `json:"columns"`
	// Covered is the live rows of the current snapshot that the index covers, of Total.
	Covered   int64 `json:"rows_covered"`
	Total     int64 `json:"rows_total"`
	Artifacts int   `json:"artifacts"`
	Bytes     int64 `json:"bytes"`
	// Capped is how many artifacts answer no test of a value in some row group or at all, since it has too many values. Those
	// whose roots are in bundles alone are not counted: roots beyond 1 KiB are.
	Capped int `json:"artifacts_capped,omitempty"`
	// Outdated is how many of its first 1,024 artifacts an older format or other parameters made, which Reindex builds anew. Status counts them,
	// where an older Skomer declared the index and Reindex has not renewed all of it.
	Outdated int `json:"artifacts_outdated,omitempty"`
	// FileMap is the file map that belongs to it; nil if there is none.
	FileMap *FileMap `json:"file_map,omitempty"`
	// Problem is why it cannot be built on the table as it is now: its column was dropped, its type has changed.
	Problem string `json:"problem,omitempty"`
	// Paused is why queries do not use it: it was paused, or a shadow check quarantined it.
	Paused string `json:"paused,omitempty"`
}

// Status is the state of an overlay against its table.
type Status struct {
	Table          string    `json:"table"`
	TableUUID      string    `json:"table_uuid"`
	Overlay        string    `json:"overlay"`
	Mounted        bool      `json:"mounted"`
	OverlayVersion uint64    `json:"overlay_version"`
	SnapshotID     int64     `json:"snapshot_id"`        // of the table now
	SyncedSnapshot int64     `json:"synced_snapshot_id"` // of the last sync
	LastSync       time.Time `json:"last_sync,omitzero"`
	// LagSeconds is how long the table has been ahead of the overlay: since the first snapshot that was not synced.
	LagSeconds float64 `json:"lag_seconds"`
	Files      int     `json:"files"`
	Rows       int64   `json:"rows"`
	Indexes    []Index `json:"indexes"`
	Bundles    int     `json:"bundles"` // objects that hold artifacts
	Bytes      int64   `json:"bytes"`   // of the artifacts of all indexes
	// Objects counts what the overlay's newest version names, by sort: bundle, chunk and list (of artifacts and of what follows), filemap, facts,
	// sketch, refused. Bytes are those that the version needs.
	Objects  map[string]Tally `json:"objects"`
	Backlog  Backlog          `json:"backlog"`
	Rejected map[string]int64 `json:"rejected"` // artifacts by reason
	Warnings []string         `json:"warnings"`
	// Unusable is why queries use nothing of the overlay: its newest version is damaged, not signed as it should be, or of another table.
	Unusable string `json:"unusable,omitempty"`
}
