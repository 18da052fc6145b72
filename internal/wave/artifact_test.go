package wave_test

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/wave"
)

type noReaders struct{}

func (noReaders) Get(string, int64) index.Reader       { return nil }
func (noReaders) Put(string, int64, index.Reader, int) {}

// TestARootMustBeTheOneThatASignedOverlayNames: where its SHA-256 is known, a root with the right CRC32C is not enough.
func TestARootMustBeTheOneThatASignedOverlayNames(t *testing.T) {
	k, ok := kinds.ByName("bloom")
	require.True(t, ok)
	root := []byte("not a root that opens")
	sum := sha256.Sum256(root)
	art := wave.Artifact{Kind: k.Kind, Rows: 1, RootCRC: bytescan.CRC32C(root), RootData: root, RootSum: &sum}
	err := wave.NewProbe("bundle", art, &predicate.Leaf{}, noReaders{}).Prepare()
	require.Error(t, err)
	require.NotContains(t, err.Error(), "signed overlay", "it is the root, though no kind opens it")
	sum[7] ^= 1
	err = wave.NewProbe("bundle", art, &predicate.Leaf{}, noReaders{}).Prepare()
	require.True(t, fault.Is(err, fault.Corrupt), err)
	require.ErrorContains(t, err, "signed overlay")
}
