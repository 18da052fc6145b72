package skomer

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/overlay"
)

// capped tells whether an artifact answers no test of a value in some of its parts, as far as its root is at hand and as it was written.
func capped(kind string, a *overlay.ArtifactInfo) bool {
	e, ok := kinds.ByName(kind)
	if !ok || len(a.RootInline) == 0 || bytescan.CRC32C(a.RootInline) != a.Root.CRC {
		return false
	}
	r, err := e.Kind.Open(a.RootInline, a.Rows)
	if err != nil {
		return false
	}
	x, ok := r.(index.Limited)
	if !ok {
		return false
	}
	silent, _ := x.Silent()
	return silent > 0
}
