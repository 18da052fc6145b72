package catalog

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
)

// TestRESTHandsOutAccess: the config of a table and its storage credentials, as far as they are about storage.
func TestRESTHandsOutAccess(t *testing.T) {
	s, _ := serve(t)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	c := New(&Config{Catalogs: map[string]Properties{"prod": {
		"uri": h.URL + "/cat", "credential": "me:secret:with:colons", "scope": "PRINCIPAL_ROLE:ALL", "header.X-Team": "blue", "warehouse": "my house",
	}}}, nil, nil)
	find := func() (*lake.Found, error) { return c.Find(context.Background(), "prod.a.b.Table") }
	found, err := find()
	require.NoError(t, err)
	require.Empty(t, found.Access)

	s.config = map[string]any{"s3.region": "eu-west-3", "token": "of the catalog", "client.region": "x"}
	s.extra = map[string]any{"storage-credentials": []any{
		map[string]any{"prefix": "s3://lake/", "config": map[string]any{"s3.access-key-id": "a", "s3.secret-access-key": "b", "other": "c"}},
		map[string]any{"prefix": "gs://lake/", "config": map[string]any{"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1000"}},
	}}
	found, err = find()
	require.NoError(t, err)
	common := map[string]string{"s3.region": "eu-west-3", "client.region": "x"}
	with := func(more ...string) map[string]string {
		out := map[string]string{}
		for k, v := range common {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	require.Equal(t, []lake.Credential{
		{Properties: with()},
		{Prefix: "s3://lake/", Properties: with("s3.access-key-id", "a", "s3.secret-access-key", "b")},
		{Prefix: "gs://lake/", Properties: with("gcs.oauth2.token", "t", "gcs.oauth2.token-expires-at", "1000")},
	}, plain(found.Access))

	s.extra = map[string]any{"storage-credentials": []any{"x"}}
	_, err = find()
	require.Equal(t, fault.Corrupt, fault.ClassOf(err), "%v", err)
}

func plain(all []lake.Credential) []lake.Credential {
	out := make([]lake.Credential, len(all))
	for i, c := range all {
		out[i] = lake.Credential{Prefix: c.Prefix, Properties: map[string]string{}}
		for k, v := range c.Properties {
			out[i].Properties[k] = v
		}
	}
	return out
}

// TestRESTSigns: requests to catalogs of AWS are signed, and the catalog's own token moves aside.
func TestRESTSigns(t *testing.T) {
	var asked []http.Header
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header)
		_, _ = w.Write([]byte(`{"identifiers":[]}`))
	}))
	t.Cleanup(h.Close)
	c := New(&Config{Catalogs: map[string]Properties{"aws": {
		"uri": h.URL, "type": "rest", "token": "mine", "rest.sigv4-enabled": "true", "rest.signing-name": "s3tables", "rest.signing-region": "eu-west-1",
		"client.access-key-id": "AKID", "client.secret-access-key": "secret", "client.session-token": "session",
	}}}, nil, nil)
	note, err := c.Check(t.Context(), "aws")
	require.NoError(t, err)
	require.Contains(t, note, h.URL)
	require.Len(t, asked, 1)
	require.Regexp(t, `^AWS4-HMAC-SHA256 Credential=AKID/\d{8}/eu-west-1/s3tables/aws4_request, SignedHeaders=.*, Signature=[0-9a-f]{64}$`, asked[0].Get("Authorization"))
	require.Equal(t, "Bearer mine", asked[0].Get("Original-Authorization"))
	require.Equal(t, "session", asked[0].Get("X-Amz-Security-Token"))
	require.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", asked[0].Get("X-Amz-Content-Sha256"))

	c = New(&Config{Catalogs: map[string]Properties{"aws": {"uri": h.URL, "rest.sigv4-enabled": "true", "s3.access-key-id": "half"}}}, nil, nil)
	_, err = c.Check(t.Context(), "aws")
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
}
