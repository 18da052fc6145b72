package overlay

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

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
	// Files is hashes of what is being built, so that others leave it alone. Host, PID and Process, which is random, tell whether the
	// writer is alive.
	Files   []string `json:"files,omitempty"`
	Host    string   `json:"host,omitempty"`
	PID     int      `json:"pid,omitempty"`
	Process string   `json:"process,omitempty"`
	// Renewed is when it was written last, by the store's clock; set by InFlight.
	Renewed time.Time `json:"-"`
}

const (
	maxInFlight = 64 << 10 // bytes of one declaration
	listPage    = 1000
)

// Declare announces a build before it writes its first object. The tag is for Renew.
func (o *Overlay) Declare(ctx context.Context, f InFlight) (store.Tag, error) {
	if err := o.mayWrite(); err != nil {
		return "", err
	}
	key, raw, err := o.declaration(f)
	if err != nil {
		return "", err
	}
	tag, err := o.store.PutNew(ctx, key, bytes.NewReader(raw))
	return tag, fault.About(key, err)
}

// mayWrite refuses work whose commit would be refused, as far as the newest version in memory tells.
func (o *Overlay) mayWrite() error {
	o.mu.Lock()
	v := o.latest
	o.mu.Unlock()
	if v == nil {
		return nil
	}
	return o.mayFollow(v)
}

// Renew writes a declaration anew: its writer is alive. A Conflict fault means that somebody else wrote or removed it.
func (o *Overlay) Renew(ctx context.Context, f InFlight, old store.Tag) (store.Tag, error) {
	key, raw, err := o.declaration(f)
	if err != nil {
		return "", err
	}
	tag, err := o.store.PutIf(ctx, key, old, raw)
	return tag, fault.About(key, err)
}

func (o *Overlay) declaration(f InFlight) (key string, raw []byte, err error) {
	if f.BuildID == "" || strings.Contains(f.BuildID, "/") {
		return "", nil, fault.New(fault.Invalid, "build id "+f.BuildID, "must be one path segment")
	}
	raw, err = json.Marshal(f)
	return o.key("inflight", f.BuildID), raw, fault.Wrap(fault.Invalid, f.BuildID, err)
}

// Withdraw ends a declaration: after the build's commit, or after it was given up.
func (o *Overlay) Withdraw(ctx context.Context, buildID string) error {
	return o.store.Delete(ctx, []string{o.key("inflight", buildID)})
}

// InFlight lists the declarations. One that cannot be read is listed by its id alone.
func (o *Overlay) InFlight(ctx context.Context) ([]InFlight, error) {
	prefix := o.key("inflight") + "/"
	var reads []store.Read
	var renewed []time.Time
	for after := ""; ; {
		page, err := o.store.List(ctx, prefix, after, listPage)
		if err != nil {
			return nil, fault.About(prefix, err)
		}
		for _, in := range page {
			renewed = append(renewed, in.Modified)
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
		f.BuildID, f.Renewed = id, renewed[i]
		out = append(out, f)
	}
	return out, nil
}
