package scan

import (
	"context"

	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// aheadBytes is the most that is read of the projection before the predicate was rechecked: about what comes in the time of a round trip.
const aheadBytes = 1 << 20

// aheadGap is the most that such a read takes between spans to save a request: more requests side by side take little longer.
const aheadGap = 128 << 10

// ahead fetches what the units need for recheck and projection together, one round trip instead of two, where index evidence left so
// little that reading it in vain costs less.
func (x *run) ahead(ctx context.Context, units []*unit) error {
	if x.rows == nil || x.KeepAll {
		return nil
	}
	var reads []store.Read
	var who []*unit
	total, unsure := int64(0), false
	for _, u := range units {
		if !u.file.plan.Indexed || u.file.avro() {
			return nil
		}
		spans := u.file.project.Spans(rowset.Bridge(u.may, bridgedGap))
		if rows := u.unsure(); !rows.Empty() {
			spans, unsure = append(spans, u.file.check.Spans(rowset.Bridge(rows, bridgedGap))...), true
		}
		missing := u.held.Missing(spans)
		for _, s := range missing {
			total += s.Len
		}
		if total > aheadBytes {
			return nil
		}
		if len(missing) > 0 {
			reads, who = append(reads, store.Read{Key: u.file.path, Tag: u.file.tag, Spans: missing, Gap: aheadGap}), append(who, u)
		}
	}
	if !unsure || len(reads) == 0 {
		return nil
	}
	return x.read(ctx, reads, func(i int) *parquetio.Held { return &who[i].held })
}
