package maintain

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
)

func TestPurgeDeletesAtOnceWhatOnlyTheIndexNeeds(t *testing.T) {
	w := newWorld(t, randomOf(t))
	one := w.build("a")
	shared := w.begin("b")
	second := w.commit(overlay.AddIndex(overlay.Definition{Kind: "zonemap", KindVersion: 1, FieldIDs: []int{1}})).Indexes[0]
	b := w.open[shared]
	both := buildOf(shared, w.index, "b", "c")
	both.Artifacts[1].IndexID = second
	b.Artifacts = both.Artifacts
	w.open[shared] = b
	w.finish(shared)
	before, err := w.o.Latest(t.Context())
	require.NoError(t, err)
	young := w.begin("z")

	r, err := (&Vacuum{Overlay: w.o, Store: w.store}).Purge(t.Context(), w.index)
	require.NoError(t, err)
	require.False(t, w.has("data/"+one+".puffin"))
	require.False(t, w.has("runs/"+one), "of the index")
	require.True(t, w.has("data/"+shared+".puffin"))
	require.True(t, w.has("data/"+young+".puffin"), "of a build under way")
	require.Equal(t, 1, r.Kept[reasonShared].Objects)
	require.Positive(t, r.Deleted[reasonPurged].Objects)
	w.whole()
	v := w.commit(overlay.Rollback(before)).Version
	require.Len(t, v.Indexes(), 1)
	require.Equal(t, second, v.Indexes()[0].ID)
	w.whole()
	require.Len(t, w.finish(young).Discarded, 1)
}

func TestPurgeAllLeavesTheNameOfTheNewestVersion(t *testing.T) {
	w := newWorld(t, randomOf(t))
	w.build("a")
	w.begin("b")
	w.put("photos/1")
	slept, err := w.o.Latest(t.Context())
	require.NoError(t, err)
	r, err := (&Vacuum{Overlay: w.o, Store: w.store}).PurgeAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"photos/1"}, w.objects())
	require.Equal(t, 1, r.Kept[reasonForeign].Objects)
	all, err := w.o.Versions(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, err = overlay.Open(w.store, "o", overlay.Options{}).Latest(t.Context())
	require.True(t, fault.Is(err, fault.NotFound), err)
	_, err = w.o.Commit(t.Context(), slept, overlay.DropIndex(w.index))
	require.True(t, fault.Is(err, fault.NotFound), "a writer that slept finds nothing: %v", err)
	again := w.commit(overlay.Mount(overlay.Table{UUID: "u", Location: "s3://t"}, overlay.Upstream{})).Version
	require.Greater(t, again.Number(), slept.Number())
	require.Empty(t, again.Indexes())
	require.Empty(t, again.Find("a"))
	r, err = (&Vacuum{Overlay: w.o, Store: w.store}).PurgeAll(t.Context())
	require.NoError(t, err)
	require.Positive(t, r.Version)
	_, err = (&Vacuum{Overlay: w.o, Store: w.store}).PurgeAll(t.Context())
	require.NoError(t, err, "nothing left to purge")
	require.Equal(t, "photos/1", strings.Join(w.objects(), " "))
}

// TestPurgesTakeMarksBeforeVersionsAlone: wherever a purge is cut short, a version from before an erasure has its mark beside it as long as it has
// a list.
func TestPurgesTakeMarksBeforeVersionsAlone(t *testing.T) {
	w := newWorld(t, randomOf(t))
	w.build("a")
	w.begin("b")
	w.commit(overlay.Erase([]overlay.Identity{{Path: "a", Size: 9, Records: 5}}, nil))
	w.o.Close()
	c := (&Vacuum{Overlay: w.o, Store: w.store}).begin()
	versions, err := w.o.Versions(t.Context())
	require.NoError(t, err)
	c.objects, err = listAll(t.Context(), w.store, "o/")
	require.NoError(t, err)
	all := c.everything(t.Context(), versions)
	require.Len(t, all, len(c.objects))
	marks := 0
	for i, d := range all {
		switch d.place {
		case overlay.MarksFolder:
			marks++
		case "versions":
			require.Equal(t, 1, marks, "%d: %s", i, d.Key)
		default:
			require.Zero(t, marks, "%d: %s", i, d.Key)
		}
	}
	require.Equal(t, 1, marks)
}
