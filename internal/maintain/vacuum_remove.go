package maintain

import (
	"context"
	"errors"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
)

// remove deletes payloads, then the lists that named them, then the bodies of expired versions, then the declarations of builds
// that were revoked. Each step can be repeated.
func (w *cleaning) remove(ctx context.Context, doomed []doom, revoked []string) error {
	const page = 500
	for batch := range slices.Chunk(doomed, page) {
		keys := make([]string, len(batch))
		for i, d := range batch {
			keys[i] = d.Key
		}
		if err := w.Store.Delete(ctx, keys); err != nil {
			return fault.About(w.Overlay.Prefix(), err)
		}
		for _, d := range batch {
			count(w.report.Deleted, d.reason, d.Size)
			logTo(w.Log).DebugContext(ctx, sayDeleted, "object", d.Key, "bytes", d.Size, "reason", d.reason)
		}
	}
	if w.newest == nil {
		return nil
	}
	for _, v := range w.expired(w.newest.Oldest()) {
		done, err := w.Overlay.Expire(ctx, w.newest, v)
		if err != nil {
			return err
		}
		if done {
			count(w.report.Deleted, reasonBody, v.Size)
			logTo(w.Log).DebugContext(ctx, sayDeleted, "object", v.Key, "bytes", v.Size, "reason", reasonBody)
		}
	}
	var errs []error
	for _, id := range revoked {
		errs = append(errs, w.Overlay.Withdraw(ctx, id))
	}
	w.tellDeclarations(revoked)
	return errors.Join(errs...)
}

func (w *cleaning) tellBodies(old []overlay.Object) {
	for _, v := range old {
		count(w.report.Deleted, reasonBody, v.Size)
	}
}

func (w *cleaning) tellDeclarations(builds []string) {
	for range builds {
		count(w.report.Deleted, reasonDeclared, 0)
	}
}
