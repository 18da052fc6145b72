package overlay

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// InFlight is a build that has begun. Who removes objects that no version names must leave those of builds in flight alone.
type InFlight struct {
	BuildID   string   `json:"build_id"`
	Indexes   []string `json:"indexes"`
	Bundle    string   `json:"bundle,omitempty"` // object key, if known beforehand
	StartedMs int64    `json:"started_ms"`
	Writer    string   `json:"writer,omitempty"` // host and process: a hint for people
}

const (
	maxInFlight = 64 << 10 // bytes of one declaration
	listPage    = 1000
)

// Declare announces a build before it writes its first object.
func (o *Overlay) Declare(ctx context.Context, f InFlight) error {
	if f.BuildID == "" || strings.Contains(f.BuildID, "/") {
		return fault.New(fault.Invalid, "build id "+f.BuildID, "must be one path segment")
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return fault.Wrap(fault.Invalid, f.BuildID, err)
	}
	key := o.key("inflight", f.BuildID)
	_, err = o.store.PutNew(ctx, key, bytes.NewReader(raw))
	return fault.About(key, err)
}

// Withdraw ends a declaration: after the build's commit, or after it was given up.
func (o *Overlay) Withdraw(ctx context.Context, buildID string) error {
	return o.store.Delete(ctx, []string{o.key("inflight", buildID)})
}

// InFlight lists the declarations. One that cannot be read is listed by its id alone.
func (o *Overlay) InFlight(ctx context.Context) ([]InFlight, error) {
	prefix := o.key("inflight") + "/"
	var reads []store.Read
	for after := ""; ; {
		page, err := o.store.List(ctx, prefix, after, listPage)
		if err != nil {
			return nil, fault.About(prefix, err)
		}
		for _, in := range page {
			reads = append(reads, store.Read{Key: in.Key, Spans: []store.Span{store.Suffix(maxInFlight)}})
		}
		if len(page) < listPage {
			break
		}
		after = page[len(page)-1].Key
	}
	if len(reads) == 0 {
		return nil, nil
	}
	var out []InFlight
	for i, r := range o.store.Fetch(ctx, reads) {
		if fault.Is(r.Err, fault.NotFound) {
			continue
		}
		id := strings.TrimPrefix(reads[i].Key, prefix)
		f := InFlight{}
		if r.Err != nil || json.Unmarshal(r.Data[0], &f) != nil {
			f = InFlight{}
		}
		f.BuildID = id
		out = append(out, f)
	}
	return out, nil
}
