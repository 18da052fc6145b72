package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestLoad(t *testing.T) {
	weak := write(t, ".pyiceberg.yaml", `
default-catalog: prod
catalog:
  prod:
    uri: http://weak
    token: weak-token
    s3:
      endpoint: http://minio:9000
    header.X-Team: blue
  lab: {type: sql, uri: "sqlite:////tmp/x.db"}
`)
	strong := write(t, "skomer.yaml", "catalog:\n  prod:\n    uri: http://strong\n    port: 8181\n")
	c, err := Load([]string{weak, strong, "/does/not/exist.yaml"}, []string{
		"PYICEBERG_CATALOG__PROD__S3__ACCESS_KEY_ID=abc", "PYICEBERG_CATALOG__MY_OWN__URI=http://own", "PYICEBERG_DEFAULT_CATALOG=lab", "HOME=/root",
	})
	require.NoError(t, err)
	require.Equal(t, &Config{Default: "lab", Catalogs: map[string]Properties{
		"prod": {
			"uri": "http://strong", "token": "weak-token", "s3.endpoint": "http://minio:9000", "header.X-Team": "blue",
			"port": "8181", "s3.access-key-id": "abc",
		},
		"lab":    {"type": "sql", "uri": "sqlite:////tmp/x.db"},
		"my-own": {"uri": "http://own"},
	}}, c)
}

func TestLoadBadYAML(t *testing.T) {
	path := write(t, "skomer.yaml", "catalog: [")
	_, err := Load([]string{path}, nil)
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	require.ErrorContains(t, err, path)
}

func TestFiles(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	require.Equal(t, []string{dir + "/skomer.yaml"}, Files([]string{"HOME=" + home}, dir))
	require.NoError(t, os.WriteFile(dir+"/.pyiceberg.yaml", nil, 0o600))
	require.Equal(t, []string{dir + "/.pyiceberg.yaml", dir + "/skomer.yaml"}, Files([]string{"HOME=" + home}, dir))
	require.NoError(t, os.WriteFile(home+"/.pyiceberg.yaml", nil, 0o600))
	require.Equal(t, []string{home + "/.pyiceberg.yaml", dir + "/skomer.yaml"}, Files([]string{"HOME=" + home}, dir))
}

func TestExpand(t *testing.T) {
	p := Properties{"token": "a-${TOKEN}-$x", "uri": "u"}
	got, err := p.expand("c", map[string]string{"TOKEN": "${NO}"})
	require.NoError(t, err)
	require.Equal(t, Properties{"token": "a-${NO}-$x", "uri": "u"}, got, "values are not expanded again")
	_, err = p.expand("c", nil)
	require.ErrorContains(t, err, "TOKEN")
}

func TestSplit(t *testing.T) {
	c := New(&Config{Catalogs: map[string]Properties{"prod": {}, "Lab": {}}, Default: "prod"}, nil, nil)
	for name, want := range map[string]string{
		"prod.ns.t": "prod|ns|t", "lab.ns.t": "Lab|ns|t", "ns.t": "prod|ns|t", "a.b.t": "prod|a,b|t", "prod.a.b.t": "prod|a,b|t", "lab.t": "prod|lab|t",
	} {
		catalog, id, err := c.split(name)
		require.NoError(t, err, name)
		require.Equal(t, want, catalog+"|"+strings.Join(id.Namespace, ",")+"|"+id.Table, name)
	}
	for _, bad := range []string{"t", "a..t", ".t", "t."} {
		_, _, err := c.split(bad)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), bad)
	}
	_, _, err := New(&Config{Catalogs: map[string]Properties{"a": {}, "b": {}}}, nil, nil).split("ns.t")
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
	require.Contains(t, fault.FixOf(err), "a, b")
}

func TestKinds(t *testing.T) {
	for kind, p := range map[string]Properties{
		"rest": {"uri": "https://x"}, "sql": {"uri": "sqlite:///x"}, "hive": {"uri": "thrift://x"}, "glue": {"type": "GLUE"}, "": {},
	} {
		require.Equal(t, kind, kindOf(p))
	}
	for kind, class := range map[string]fault.Class{"glue": fault.Unsupported, "": fault.Invalid} {
		c := New(&Config{Catalogs: map[string]Properties{"c": {"type": kind}}}, nil, nil)
		_, err := c.Find(context.Background(), "c.ns.t")
		require.Equal(t, class, fault.ClassOf(err))
	}
}

// server is a REST catalog of one table, prod.a.b.Table.
type server struct {
	t        *testing.T
	table    *lakewrite.Table
	extra    map[string]any // into the loadTable reply
	config   map[string]any
	expired  atomic.Int32 // replies of 401 still to give
	busy     atomic.Int32 // replies of 503 still to give
	tokens   atomic.Int32
	requests atomic.Int32
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	if r.URL.Path == "/cat/v1/oauth/tokens" {
		assert.NoError(s.t, r.ParseForm())
		if r.Form.Get("client_secret") != "secret:with:colons" || r.Form.Get("client_id") != "me" || r.Form.Get("grant_type") != "client_credentials" || r.Form.Get("scope") != "PRINCIPAL_ROLE:ALL" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client","error_description":"no such client"}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"bearer","expires_in":3600}`, s.tokens.Add(1))
		return
	}
	if s.busy.Add(-1) >= 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.Header.Get("X-Team") != "blue" || r.Header.Get("Authorization") != fmt.Sprintf("Bearer token-%d", s.tokens.Load()) || s.expired.Add(-1) >= 0 {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"who are you?","type":"NotAuthorizedException","code":401}}`)
		return
	}
	switch r.URL.EscapedPath() {
	case "/cat/v1/config":
		assert.Equal(s.t, "my house", r.URL.Query().Get("warehouse"))
		reply := map[string]any{"defaults": map[string]any{"prefix": "weak"}, "overrides": map[string]any{"prefix": "p1"}}
		assert.NoError(s.t, json.NewEncoder(w).Encode(reply))
	case "/cat/v1/p1/namespaces/a%1Fb/tables/Table":
		b, err := os.ReadFile(s.table.MetadataPath())
		assert.NoError(s.t, err)
		reply := map[string]any{"metadata-location": s.table.MetadataPath(), "metadata": json.RawMessage(b), "config": s.config}
		for k, v := range s.extra {
			reply[k] = v
		}
		assert.NoError(s.t, json.NewEncoder(w).Encode(reply))
	case "/cat/v1/p1/namespaces/a%1Fb/tables":
		if r.URL.Query().Get("pageToken") == "" {
			fmt.Fprint(w, `{"identifiers":[{"namespace":["a","b"],"name":"other"}],"next-page-token":"2"}`)
			return
		}
		fmt.Fprint(w, `{"identifiers":[{"namespace":["a","b"],"name":"Table"}]}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error":{"message":"Table does not exist","type":"NoSuchTableException","code":404}}`)
	}
}

func table(t *testing.T) *lakewrite.Table {
	t.Helper()
	ctx := context.Background()
	schema := &column.Schema{Fields: []column.Field{{ID: 1, Name: "a", Type: column.Of(column.Int)}}}
	w, err := lakewrite.Create(ctx, local.New(), t.TempDir(), lakewrite.Spec{Schema: schema})
	require.NoError(t, err)
	_, err = w.Append(ctx, lakewrite.File{Path: w.Location() + "/data/x", Records: 7, Size: 9})
	require.NoError(t, err)
	return w
}

func serve(t *testing.T) (*server, *lake.Lake) {
	t.Helper()
	s := &server{t: t, table: table(t)}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	config := &Config{Catalogs: map[string]Properties{"prod": {
		"uri": h.URL + "/cat/", "credential": "me:${SECRET}", "scope": "PRINCIPAL_ROLE:ALL", "header.X-Team": "blue", "warehouse": "my house",
	}}}
	return s, lake.New(lake.Options{Catalogs: New(config, []string{"SECRET=secret:with:colons"}, nil)})
}

func TestREST(t *testing.T) {
	s, l := serve(t)
	ctx := context.Background()
	for range 2 {
		opened, err := l.Open(ctx, "prod.a.b.Table")
		require.NoError(t, err)
		snapshot, err := opened.Snapshot(ctx, lake.Current())
		require.NoError(t, err)
		require.Equal(t, []int64{7}, snapshot.Files.Records)
		require.Equal(t, s.table.MetadataPath(), opened.MetadataPath())
	}
	require.Equal(t, int32(1), s.tokens.Load())
	require.Equal(t, int32(4), s.requests.Load(), "token, config, and one request a table")
}

func TestRESTIgnoresCaseOfTables(t *testing.T) {
	_, l := serve(t)
	_, err := l.Open(context.Background(), "prod.a.b.TABLE")
	require.NoError(t, err)
	_, err = l.Open(context.Background(), "prod.a.b.nosuch")
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
	require.ErrorContains(t, err, "prod.a.b.nosuch")
	require.ErrorContains(t, err, "Table does not exist")
}

func TestRESTRenewsItsToken(t *testing.T) {
	s, l := serve(t)
	_, err := l.Open(context.Background(), "prod.a.b.Table")
	require.NoError(t, err)
	s.expired.Store(1)
	_, err = l.Open(context.Background(), "prod.a.b.Table")
	require.NoError(t, err)
	require.Equal(t, int32(2), s.tokens.Load())
	s.expired.Store(2)
	_, err = l.Open(context.Background(), "prod.a.b.Table")
	require.Equal(t, fault.Denied, fault.ClassOf(err))
	require.ErrorContains(t, err, "who are you?")
}

func TestRESTWaitsForABusyServer(t *testing.T) {
	s, l := serve(t)
	s.busy.Store(2)
	_, err := l.Open(context.Background(), "prod.a.b.Table")
	require.NoError(t, err)
	s.busy.Store(100)
	_, err = l.Open(context.Background(), "prod.a.b.Table")
	require.Equal(t, fault.Exhausted, fault.ClassOf(err))
	require.True(t, fault.Retryable(err))
}

func TestRESTBadCredential(t *testing.T) {
	s, _ := serve(t)
	h := httptest.NewServer(s)
	defer h.Close()
	c := New(&Config{Catalogs: map[string]Properties{"prod": {"uri": h.URL + "/cat", "credential": "me:wrong"}}}, nil, nil)
	_, err := c.Find(context.Background(), "prod.a.b.Table")
	require.Equal(t, fault.Denied, fault.ClassOf(err))
	require.ErrorContains(t, err, "no such client")
	require.NotContains(t, err.Error(), "wrong")
}

// TestRESTObeys: tables that the catalog restricts are refused, never planned around.
func TestRESTObeys(t *testing.T) {
	s, l := serve(t)
	type object = map[string]any
	for name, c := range map[string]struct {
		extra, config object
		words         string
	}{
		"row filter":        {object{"read-restrictions": object{"required-row-filter": object{"type": "eq"}}}, nil, "restricts which rows or columns"},
		"projection":        {object{"read-restrictions": object{"required-projection": []any{object{"field-id": 1}}}}, nil, "restricts which rows or columns"},
		"column mask":       {object{"column_masks": object{"a": "sha2(a)"}}, nil, "restricts which rows or columns"},
		"config row filter": {nil, object{"polaris.row-filter": "a > 1"}, "restricts which rows or columns"},
		"server planning":   {nil, object{"scan-planning-mode": "server"}, "scan-planning-mode: server"},
		"remote signing":    {nil, object{"s3.remote-signing-enabled": "true"}, "withholds storage credentials"},
		"no restriction":    {object{"read-restrictions": object{"required-projection": []any{}, "required-row-filter": nil}}, nil, ""},
		"vended":            {object{"storage-credentials": []any{object{"prefix": "s3"}}}, object{"s3.remote-signing-enabled": "true"}, ""},
		"client planning":   {nil, object{"scan-planning-mode": "client"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.extra, s.config = c.extra, c.config
			_, err := l.Open(context.Background(), "prod.a.b.Table")
			if c.words == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, fault.Refused, fault.ClassOf(err))
			require.ErrorContains(t, err, c.words)
			require.NotEmpty(t, fault.FixOf(err))
		})
	}
}

func TestCatalogWideServerPlanning(t *testing.T) {
	err := allowed("t", Properties{"scan-planning-mode": "server"}, map[string]json.RawMessage{})
	require.Equal(t, fault.Refused, fault.ClassOf(err))
	table := map[string]json.RawMessage{"config": json.RawMessage(`{"scan-planning-mode":"client"}`)}
	require.NoError(t, allowed("t", Properties{"scan-planning-mode": "server"}, table), "the table's own word counts")
}

// TestRedirects: secrets do not follow a redirect to another host.
func TestRedirects(t *testing.T) {
	leaked := false
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked = true }))
	defer thief.Close()
	h := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer h.Close()
	c := New(&Config{Catalogs: map[string]Properties{"c": {"uri": h.URL, "token": "t", "header.X-Key": "k"}}}, nil, nil)
	_, err := c.Find(context.Background(), "c.ns.t")
	require.Error(t, err)
	require.False(t, leaked)
}

func TestReplies(t *testing.T) {
	for body, class := range map[string]fault.Class{
		"{": fault.Corrupt, "[]": fault.Corrupt, `{"config":[]}`: fault.Corrupt, `{"metadata":{}}`: fault.Corrupt, `{"metadata-location":5,"metadata":{}}`: fault.Corrupt,
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/config" {
				fmt.Fprint(w, "{}")
				return
			}
			fmt.Fprint(w, body)
		}))
		c := New(&Config{Catalogs: map[string]Properties{"c": {"uri": h.URL}}}, nil, nil)
		_, err := c.Find(context.Background(), "c.ns.t")
		require.Equal(t, class, fault.ClassOf(err), body)
		h.Close()
	}
}

func database(t *testing.T, w *lakewrite.Table) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "odd name ?#%20é.db")
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	defer db.Close()
	for _, q := range []string{
		`CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
			metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), PRIMARY KEY (catalog_name, table_namespace, table_name))`,
		`INSERT INTO iceberg_tables VALUES ('lab', 'a.b', 'Table', 'file://` + w.MetadataPath() + `', NULL), ('lab', 'a.b', 'gone', NULL, NULL), ('other', 'x', 'y', 'z', NULL)`,
		`VACUUM INTO '` + path + `'`,
	} {
		_, err := db.Exec(q)
		require.NoError(t, err)
	}
	return path
}

func TestSQL(t *testing.T) {
	ctx := context.Background()
	path := database(t, table(t))
	require.FileExists(t, path)
	// The rest of the name is not SQLAlchemy's query string here.
	plain := filepath.Join(filepath.Dir(path), "cat %20é#.db")
	require.NoError(t, os.Rename(path, plain))
	config := &Config{Catalogs: map[string]Properties{"lab": {"uri": "sqlite:///" + plain}}}
	l := lake.New(lake.Options{Catalogs: New(config, nil, nil)})
	for _, name := range []string{"lab.a.b.Table", "a.b.Table", "LAB.a.b.tABLE"} {
		opened, err := l.Open(ctx, name)
		require.NoError(t, err, name)
		s, err := opened.Snapshot(ctx, lake.Current())
		require.NoError(t, err)
		require.Equal(t, []int64{7}, s.Files.Records)
	}
	_, err := l.Open(ctx, "lab.a.b.nosuch")
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
	require.Contains(t, fault.FixOf(err), "other")
	_, err = l.Open(ctx, "lab.a.b.gone")
	require.Equal(t, fault.Corrupt, fault.ClassOf(err))

	catalogs := New(config, nil, nil)
	for pattern, want := range map[string][]string{
		"lab.a.b.*": {"lab.a.b.Table", "lab.a.b.gone"}, "a.b.T?ble": {"a.b.Table"}, "a.b.*e": {"a.b.Table", "a.b.gone"}, "a.b.t*": nil, "other.*": nil,
	} {
		got, err := catalogs.Match(ctx, pattern)
		require.NoError(t, err, pattern)
		require.Equal(t, want, got, pattern)
	}
	for _, bad := range []string{"a.*.Table", "a.b.[", "*"} {
		_, err := catalogs.Match(ctx, bad)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), bad)
	}
}

func TestSQLTrouble(t *testing.T) {
	for uri, class := range map[string]fault.Class{
		"sqlite:////does/not/exist.db": fault.NotFound,
		"sqlite://":                    fault.Invalid,
		"postgresql+psycopg2://h/db":   fault.Unsupported,
		"sqlite:///" + write(t, "x", "no database at all, but long enough to be read as one, surely"): fault.Corrupt,
	} {
		c := New(&Config{Catalogs: map[string]Properties{"lab": {"type": "sql", "uri": uri}}}, nil, nil)
		_, err := c.Find(context.Background(), "lab.ns.t")
		require.Equal(t, class, fault.ClassOf(err), "%s: %v", uri, err)
	}
}

func TestStorage(t *testing.T) {
	p := Properties{"uri": "${NOT_SET}", "s3.region": "r", "client.access-key-id": "${KEY}", "token": "x"}
	got, err := p.Storage("catalog c", []string{"KEY=k"})
	require.NoError(t, err)
	require.Equal(t, Properties{"s3.region": "r", "client.access-key-id": "k"}, got)
	_, err = p.Storage("catalog c", nil)
	require.ErrorContains(t, err, "catalog c: its client.access-key-id needs the variable KEY")
}

func TestOf(t *testing.T) {
	c := &Config{Catalogs: map[string]Properties{"prod": {}, "test": {}}, Default: "test"}
	for name, want := range map[string]string{
		"prod.ns.table": "prod", "PROD.ns.table": "prod", "prod.table": "test", "other.ns.table": "test", "s3://prod.a.b/table": "test", "/prod.a.b": "test", "table": "test",
	} {
		require.Equal(t, want, c.Of(name), name)
	}
	require.Empty(t, (&Config{}).Of("a.b.c"))
}
