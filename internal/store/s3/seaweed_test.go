package s3_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

// TestInteropSeaweedFS runs the contract on a server that real deployments use. SKOMER_WEED is its program.
func TestInteropSeaweedFS(t *testing.T) {
	options := s3test.Seaweed(t, "bucket")
	t.Run("PartsOnce", func(t *testing.T) { partsOnce(t, options) })
	var subjects atomic.Int64
	storetest.Run(t, func(*testing.T) storetest.Subject {
		return storetest.Subject{
			Store: s3.New(options), Root: fmt.Sprintf("s3://bucket/%d/", subjects.Add(1)), ContentTags: true,
			Without: map[string]string{
				"ListOrder": "SeaweedFS lists folder by folder, so that a/x comes before a-b",
				"Backslash": "SeaweedFS takes a backslash for a slash",
			},
		}
	})
}

// partsOnce uploads an object in parts twice: the condition is judged at the end, and its tag is that of later reads.
func partsOnce(t *testing.T, o s3.Options) {
	o.PartBytes = 5 << 20
	s, b := s3.New(o), bytes.Repeat([]byte("0123456789abcdef"), 6<<16)
	tag, err := s.PutNew(t.Context(), "s3://bucket/parts", bytes.NewReader(b))
	require.NoError(t, err)
	r := s.Fetch(t.Context(), []store.Read{{Key: "s3://bucket/parts", Tag: tag}})[0]
	require.NoError(t, r.Err)
	require.True(t, bytes.Equal(b, r.Data[0]))
	_, err = s.PutNew(t.Context(), "s3://bucket/parts", bytes.NewReader(b[1:]))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	require.Equal(t, tag, s.Stat(t.Context(), []string{"s3://bucket/parts"})[0].Tag)
}
