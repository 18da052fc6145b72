package overlay

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/store"
)

// million publishes n artifacts of one file each, `per` indexes a file, in bundles of 500 artifacts, and returns the store.
func million(b *testing.B, n, per int) (store.Store, []string) {
	b.Helper()
	st := newMem()
	o := mounted(b, st)
	var ids []string
	for i := range per {
		ids = append(ids, commit(b, o, nil, AddIndex(definition("bloom", i+1))).Indexes[0])
	}
	for from := 0; from < n/per; {
		var builds []Build
		for range 100 {
			bd := Build{ID: fmt.Sprint("build-", from), Bundle: fmt.Sprintf("s3://acme-index/skomer/%s/data/build-%010d.puffin", testTable.UUID, from), SnapshotID: 11, Sequence: 1}
			for i := 0; i < 500 && from < n/per; i += per {
				for k, id := range ids {
					a := artifact(id, i+k, fileID(from))
					a.RootInline = nil
					bd.Artifacts = append(bd.Artifacts, a)
				}
				from++
			}
			builds = append(builds, bd)
		}
		commit(b, o, nil, Publish(nil, builds...))
		_, err := o.Compact(b.Context())
		require.NoError(b, err)
	}
	o.Close()
	return st, ids
}

func BenchmarkOpenMillion(b *testing.B) {
	for _, per := range []int{1, 4} {
		b.Run(fmt.Sprintf("files=%d", 1_000_000/per), func(b *testing.B) {
			st, _ := million(b, 1_000_000, per)
			b.ReportAllocs()
			var v *Version
			for b.Loop() {
				v = latest(b, Open(st, "o", Options{}))
			}
			hot := int64(0)
			for _, c := range v.body.chunks {
				hot += c.hotLen
			}
			b.ReportMetric(float64(hot)/(1<<20), "MiB-hot")
			b.ReportMetric(float64(len(v.body.chunks)), "chunks")
		})
	}
}

func BenchmarkFindInMillion(b *testing.B) {
	st, _ := million(b, 1_000_000, 4)
	v := latest(b, Open(st, "o", Options{}))
	paths := make([]string, 250_000)
	for i := range paths {
		paths[i] = fileID(i * 7919 % len(paths)).Path
	}
	b.ReportAllocs()
	var dst []Placement
	i := 0
	for b.Loop() {
		dst = v.AppendFind(dst[:0], paths[i%len(paths)])
		if len(dst) != 4 {
			b.Fatal(len(dst))
		}
		i++
	}
}

// BenchmarkPublishAtMillion is the commit of a build of 500 artifacts on top of a million.
func BenchmarkPublishAtMillion(b *testing.B) {
	st, ids := million(b, 1_000_000, 4)
	counted := &puts{Store: st}
	o := Open(counted, "o", Options{})
	v := latest(b, o)
	n := 2_000_000
	counted.n, counted.bytes = 0, 0
	for b.Loop() {
		bd := Build{ID: fmt.Sprint("more-", n), Bundle: fmt.Sprint("o/data/more-", n), SnapshotID: 11, Sequence: 1}
		for i := range 500 {
			a := artifact(ids[0], i, fileID(n))
			a.RootInline, a.Lineage = nil, lineage.Place{Off: int64(i), Len: 1}
			bd.Artifacts = append(bd.Artifacts, a)
			n++
		}
		r := commit(b, o, v, Publish(nil, bd))
		require.Empty(b, r.Discarded)
		v = r.Version
	}
	b.ReportMetric(float64(counted.n)/float64(b.N), "puts/op")
	b.ReportMetric(float64(counted.bytes)/float64(b.N)/1024, "KiB/op")
	o.Close()
}

func BenchmarkDropAtMillion(b *testing.B) {
	st, _ := million(b, 1_000_000, 4)
	o := Open(st, "o", Options{})
	v := latest(b, o)
	for b.Loop() {
		r := commit(b, o, v, AddIndex(definition("ordered", 9)))
		v = commit(b, o, r.Version, DropIndex(r.Indexes[0])).Version
	}
	o.Close()
}
