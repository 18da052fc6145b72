package skomer

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/overlay"
)

// overlaysAtOnce is how many tables are opened side by side to see how their overlays stand.
const overlaysAtOnce = 8

// The states of an overlay below the overlay root.
const (
	OverlayMounted   = "mounted"
	OverlayUnmounted = "unmounted"
	// OverlayStranded is one whose table was not found, or is another one now.
	OverlayStranded = "stranded"
	// OverlayUnusable is one whose newest version is damaged, or not signed as it should be.
	OverlayUnusable = "unusable"
	// OverlayUnknown is one that could not be read, or whose table could not.
	OverlayUnknown = "unknown"
)

// OverlayState is what is known of one overlay below the overlay root.
type OverlayState struct {
	Overlay   string  `json:"overlay"`
	State     string  `json:"state"`
	Reason    string  `json:"reason,omitempty"`     // for the state, unless it is mounted
	Table     string  `json:"table,omitempty"`      // as it was mounted
	Location  string  `json:"location,omitempty"`   // of the table then
	TableUUID string  `json:"table_uuid,omitempty"` // likewise
	Status    *Status `json:"status,omitempty"`     // nil: the table was not opened
}

// Overlays looks at every overlay below the overlay root and at its table, which is opened by the name that it was mounted by, or else by its
// place; Map of the options is used then. One that was unmounted and holds nothing is left out.
func (c *Client) Overlays(ctx context.Context, o TableOptions) ([]OverlayState, error) {
	places, err := c.overlayPlaces(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]OverlayState, len(places))
	var g errgroup.Group
	g.SetLimit(overlaysAtOnce)
	for i, place := range places {
		g.Go(func() error {
			all[i] = c.overlayState(ctx, place, o)
			return nil
		})
	}
	_ = g.Wait() // what went wrong is in the states
	if err := ctx.Err(); err != nil {
		return nil, fault.About("overlays", err)
	}
	out := []OverlayState{}
	for _, s := range all {
		if s.State != "" {
			out = append(out, s)
		}
	}
	return out, nil
}

// overlayPlaces is the folders of the overlay root, by one listing of one key for each.
func (c *Client) overlayPlaces(ctx context.Context) (out []string, err error) {
	root, err := c.overlayRoot()
	if err != nil {
		return nil, err
	}
	root = strings.TrimRight(root, "/")
	st, key, err := c.overlayStore("", root)
	if err != nil {
		return nil, err
	}
	prefix := strings.TrimRight(key, "/") + "/"
	for after := ""; ; {
		next, err := st.List(ctx, prefix, after, 1)
		if err != nil {
			return nil, fault.About(root, err)
		}
		if len(next) == 0 {
			return out, nil
		}
		name, _, folder := strings.Cut(strings.TrimPrefix(next[0].Key, prefix), "/")
		if after = next[0].Key; folder {
			out = append(out, root+"/"+name)
			after = prefix + name + "0" // which follows the slash
		}
	}
}

// overlayState is the state of the overlay at a place; none if nothing is there.
func (c *Client) overlayState(ctx context.Context, place string, o TableOptions) OverlayState {
	s := OverlayState{Overlay: place}
	bare := &Table{client: c, name: place, options: TableOptions{Overlay: place}}
	if err := bare.locate(); err != nil {
		return s.because(OverlayUnknown, err)
	}
	defer bare.Close()
	history, err := bare.history(ctx)
	if fault.Is(err, fault.NotFound) {
		return s // a folder of something else
	}
	if err != nil {
		return s.because(OverlayUnknown, err)
	}
	newest := history[0]
	for _, h := range history {
		if h.Err == nil && !h.Expired {
			s.Table, s.Location, s.TableUUID = h.Table.Name, h.Table.Location, h.Table.UUID
			break
		}
	}
	switch {
	case newest.Err != nil:
		return s.because(OverlayUnusable, newest.Err)
	case !newest.Mounted && newest.Indexes+newest.Artifacts == 0:
		return s
	case !newest.Mounted:
		s.State = OverlayUnmounted
		return s
	}
	return c.tableOf(ctx, s, newest.Table, o)
}

func (s OverlayState) because(state string, err error) OverlayState {
	s.State, s.Reason = state, err.Error()
	return s
}

// tableOf completes the state of a mounted overlay by its table.
func (c *Client) tableOf(ctx context.Context, s OverlayState, of overlay.Table, o TableOptions) OverlayState {
	o.Overlay = s.Overlay
	t, err := c.openMounted(ctx, of, o)
	switch {
	case fault.Is(err, fault.NotFound):
		return s.because(OverlayStranded, err)
	case err != nil:
		return s.because(OverlayUnknown, err)
	}
	defer t.Close()
	if err := t.same(of); err != nil {
		return s.because(OverlayStranded, err)
	}
	if s.Status, err = t.Status(ctx); err != nil {
		return s.because(OverlayUnknown, err)
	}
	s.State = OverlayMounted
	if s.Status.Unusable != "" {
		s.State, s.Reason = OverlayUnusable, s.Status.Unusable
	}
	return s
}

// openMounted opens a table by the name that it was mounted by; one that is not found by a catalog's name may still lie at its place. NotFound
// means that whoever must know it says so.
func (c *Client) openMounted(ctx context.Context, of overlay.Table, o TableOptions) (*Table, error) {
	if !lake.Named(of.Name) {
		return c.Open(ctx, of.Location, o)
	}
	t, err := c.Open(ctx, of.Name, o)
	if !fault.Is(err, fault.NotFound) {
		return t, err
	}
	there, again := c.Open(ctx, of.Location, o)
	switch {
	case again == nil || !fault.Is(again, fault.NotFound):
		return there, again
	case c.stores.known.Of(of.Name) == "":
		return nil, fault.New(fault.Invalid, of.Name, "its catalog is not configured").WithCause(err)
	}
	return nil, err
}
