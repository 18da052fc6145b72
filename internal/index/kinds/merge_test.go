package kinds

import (
	"testing"

	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/indextest"
)

// mergeLaws is, per kind, what its merges must keep beside the law. A kind that declines every merge stands with none.
var mergeLaws = map[string][]indextest.MergeLaw{
	"zonemap":  {{}},
	"bloom":    {{}, {Lists: true}},
	"valueset": {{}, {Lists: true}, {Params: index.Params{"cap": "20"}}},
	"bitmap":   {{Pieces: true}, {Lists: true, Pieces: true}, {Params: index.Params{"cap": "60"}, Pieces: true}},
	"ordered":  {{Same: true}},
}

func TestMergesKeepTheLaw(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			for _, law := range mergeLaws[e.Name] {
				law.Kind, law.Rounds = e.Kind, 36
				law.Run(t)
			}
		})
	}
}

func TestMergesOfDamagedArtifactsFail(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			for _, law := range mergeLaws[e.Name] {
				law.Kind = e.Kind
				law.HostileMerge(t)
			}
		})
	}
}
