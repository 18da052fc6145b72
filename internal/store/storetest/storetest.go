// Package storetest answers: does a store keep the contract of store.Store? It is the one conformance suite; every backend
// and every stack of decorators runs it.
package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store"
)

// Subject is a store under test. Root is a prefix, ending in a slash, below which there is nothing yet; keys below it
// follow the rules of a file system: no key is also a directory of others.
type Subject struct {
	Store store.Store
	Root  string
	// ContentTags: equal contents have equal tags, as with entity tags that are checksums.
	ContentTags bool
	// Without names parts of the contract that a foreign server is known to break, and how.
	Without map[string]string
}

// Run runs the suite; open gives a fresh subject for each part of it.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for name, part := range map[string]func(*testing.T, *kit){
		"Spans":              testSpans,
		"RandomSpans":        testRandomSpans,
		"PastTheEnd":         testPastTheEnd,
		"EmptyObject":        testEmptyObject,
		"ReadLimit":          testReadLimit,
		"LargeObject":        testLargeObject,
		"ManyReadsInOneWave": testManyReads,
		"TagsTellContents":   testTags,
		"StaleReads":         testStale,
		"Missing":            testMissing,
		"DataIndependence":   testDataIndependence,
		"PutNewOnce":         testPutNewOnce,
		"PutNewRewinds":      testPutNewRewinds,
		"PutNewBrokenReader": testPutNewBrokenReader,
		"PutNewRace":         testPutNewRace,
		"PutIf":              testPutIf,
		"PutIfRace":          testPutIfRace,
		"PutIfCounts":        testPutIfCounts,
		"DeleteAndRecreate":  testDeleteAndRecreate,
		"Stat":               testStat,
		"ListOrder":          testListOrder,
		"ListPaging":         testListPaging,
		"OddNames":           testOddNames,
		"Backslash":          testBackslash,
		"Cancelled":          testCancelled,
		"Usage":              testUsage,
		"History":            testHistory,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			if how, broken := s.Without[name]; broken {
				t.Skip(how)
			}
			part(t, &kit{T: t, Store: s.Store, root: s.Root, contentTags: s.ContentTags, ctx: t.Context(), rnd: Rand(t)})
		})
	}
}

// Rand is a random source whose seed is printed and can be set by SKOMER_SEED.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("replay with SKOMER_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// kit is a subject with shorthand for calls that must succeed.
type kit struct {
	*testing.T
	store.Store
	root        string
	contentTags bool
	ctx         context.Context
	rnd         *rand.Rand
}

func (k *kit) key(name string) string { return k.root + name }

func (k *kit) put(name string, b []byte) store.Tag {
	k.Helper()
	tag, err := k.PutNew(k.ctx, k.key(name), bytes.NewReader(b))
	require.NoError(k, err)
	require.NotEmpty(k, tag, "a written object has a tag")
	return tag
}

func (k *kit) replace(name string, old store.Tag, b []byte) store.Tag {
	k.Helper()
	tag, err := k.PutIf(k.ctx, k.key(name), old, b)
	require.NoError(k, err)
	require.NotEmpty(k, tag, "a written object has a tag")
	return tag
}

func (k *kit) read(name string, tag store.Tag, spans ...store.Span) store.Result {
	k.Helper()
	out := k.Fetch(k.ctx, []store.Read{{Key: k.key(name), Tag: tag, Spans: spans}})
	require.Len(k, out, 1)
	return out[0]
}

// whole reads an object that must exist.
func (k *kit) whole(name string) string {
	k.Helper()
	r := k.read(name, "")
	require.NoError(k, r.Err)
	require.Len(k, r.Data, 1)
	return string(r.Data[0])
}

func (k *kit) stat(name string) store.Info {
	k.Helper()
	out := k.Store.Stat(k.ctx, []string{k.key(name)})
	require.Len(k, out, 1)
	return out[0]
}

// list gives the names, without the root, of a listing below it.
func (k *kit) list(prefix, after string, most int) []string {
	k.Helper()
	if after != "" {
		after = k.key(after)
	}
	infos, err := k.List(k.ctx, k.key(prefix), after, most)
	require.NoError(k, err)
	names := []string{}
	for _, i := range infos {
		require.NoError(k, i.Err)
		require.Greater(k, len(i.Key), len(k.root))
		names = append(names, i.Key[len(k.root):])
	}
	return names
}

// bytesOf are n bytes that differ from place to place.
func (k *kit) bytesOf(n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, k.rnd.Uint64())
	}
	return b[:n]
}
