package overlay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnIndexIsOneInEveryVersionOfItsKind: declared again by a program that writes a later version of the kind, or by an earlier one, it is the
// index that is there; what its artifacts are is recorded when all of them were built anew, once.
func TestAnIndexIsOneInEveryVersionOfItsKind(t *testing.T) {
	o := mounted(t, newMem())
	def := definition("bloom", 1)
	def.KindVersion = 2
	id := commit(t, o, nil, AddIndex(def)).Indexes[0]
	for _, version := range []int{1, 2, 3} {
		def.KindVersion = version
		require.Equal(t, []string{id}, commit(t, o, nil, AddIndex(def)).Indexes, "version %d", version)
	}
	require.Len(t, latest(t, o).Indexes(), 1)
	version := func() int { return fresh(t, o).Indexes()[0].KindVersion }
	require.Equal(t, 2, version())
	was := latest(t, o)
	commit(t, o, nil, Renewed(id, 3))
	require.Equal(t, 3, version())
	require.Equal(t, 2, was.Indexes()[0].KindVersion, "an older version stays as it is")
	commit(t, o, nil, Renewed(id, 2), Renewed("none", 9))
	require.Equal(t, 3, version())
}
