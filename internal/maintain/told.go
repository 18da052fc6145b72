package maintain

import (
	"context"
	"log/slog"
	"time"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/overlay"
)

// Messages of the log, docs/operations.md lists them.
const (
	sayPublished = "published"
	sayDiscarded = "an artifact was not published"
	sayDeclared  = "declared a build"
	sayYielded   = "files are left to other builds"
	sayBuilt     = "built a unit"
	sayWithdrawn = "ended a build"
	sayRevoked   = "revoked a build"
	sayDeleted   = "deleted"
)

var silence = slog.New(slog.DiscardHandler)

func logTo(l *slog.Logger) *slog.Logger {
	if l == nil {
		return silence
	}
	return l
}

// tellPublished logs a commit of artifacts: one line, and one for each artifact that it left out.
func (y *Syncer) tellPublished(ctx context.Context, res *build.Result, receipt *overlay.Receipt, took time.Duration) {
	log := logTo(y.Log)
	for _, d := range receipt.Discarded {
		log.InfoContext(ctx, sayDiscarded, "build", d.Build, "index", d.IndexID, "reason", d.Reason)
	}
	files, indexes := map[string]bool{}, []string{}
	seen := map[string]bool{}
	for _, a := range res.Build.Artifacts {
		if !seen[a.IndexID] {
			seen[a.IndexID] = true
			indexes = append(indexes, a.IndexID)
		}
		for _, f := range a.Files {
			files[f.Path] = true
		}
	}
	log.InfoContext(ctx, sayPublished, "build", res.Build.ID, "index", indexes, "files", len(files), "artifacts", len(res.Build.Artifacts)-len(receipt.Discarded),
		"bytes", res.Size, "version", receipt.Version.Number(), "seconds", took.Seconds())
}

// tellDeclared logs a declaration and what others hold of it.
func (y *Syncer) tellDeclared(ctx context.Context, f overlay.InFlight, left int) {
	log := logTo(y.Log)
	log.DebugContext(ctx, sayDeclared, "build", f.BuildID, "index", f.Indexes, "files", len(f.Files))
	if left < len(f.Files) {
		log.DebugContext(ctx, sayYielded, "build", f.BuildID, "files", len(f.Files)-left)
	}
}

func (y *Syncer) tellBuilt(ctx context.Context, res *build.Result, id string, took time.Duration) {
	logTo(y.Log).DebugContext(ctx, sayBuilt, "build", id, "files", res.Files, "rows", res.Rows, "read", res.BytesRead, "bytes", res.Size,
		"skipped", len(res.Skipped), "later", len(res.Later), "seconds", took.Seconds())
}
