package leastpolicy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPoliciesNameWhatIsNeeded: real buckets and prefixes, no write to the table, no wildcard over buckets or actions.
func TestPoliciesNameWhatIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		table         []string
		overlay       string
		reads, writes []string // what the documents say
	}{
		"s3": {
			[]string{"s3a://lake/web/events", "s3://lake/more"},
			"s3://indexes/skomer/uuid/",
			[]string{`"arn:aws:s3:::lake/web/events/*","arn:aws:s3:::lake/more/*"`, `"s3:GetObject"`, `"s3:prefix":["web/events/*","more/*"]`},
			[]string{`"arn:aws:s3:::indexes/skomer/uuid/*"`, `"s3:PutObject"`, `"s3:DeleteObject"`},
		},
		"gs": {
			[]string{"gs://lake/web/events"},
			"gs://indexes/skomer",
			[]string{`projects/_/buckets/lake/objects/web/events/`, `storage.objects.get`, `storage.objects.list`},
			[]string{`projects/_/buckets/indexes/objects/skomer/`, `storage.objects.create`, `storage.objects.delete`},
		},
		"azure": {
			[]string{"abfss://lake@acc.dfs.core.windows.net/web/events"},
			"abfss://indexes@acc.dfs.core.windows.net/skomer",
			[]string{`storageAccounts/acc/blobServices/default/containers/lake`, `blobs/read`, `'web/events/'`},
			[]string{`containers/indexes`, `blobs/write`, `blobs/delete`, `'skomer/'`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := Of(c.table, c.overlay)
			require.NoError(t, err)
			require.Len(t, all, 2)
			for i, want := range [][]string{c.reads, c.writes} {
				text := unescaped(t, all[i].Document)
				for _, w := range want {
					require.Contains(t, text, w)
				}
				require.NotContains(t, text, `"*"`)
			}
			for _, write := range []string{"Put", "elete", "create", "/write", "/add"} {
				require.NotContains(t, unescaped(t, all[0].Document), write, "a table is only read")
			}
		})
	}
	all, err := Of([]string{"/lake/events"}, "file:///overlays")
	require.NoError(t, err)
	require.Empty(t, all, "local files need no policy")
}

func unescaped(t *testing.T, document json.RawMessage) string {
	t.Helper()
	require.True(t, json.Valid(document))
	return strings.NewReplacer(`\u003e`, ">", `\"`, `"`).Replace(string(document))
}
