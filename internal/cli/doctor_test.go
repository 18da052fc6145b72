package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/azure"
	"github.com/skomerdb/skomer/internal/store/azure/azuretest"
	"github.com/skomerdb/skomer/internal/store/gcs"
	"github.com/skomerdb/skomer/internal/store/gcs/gcstest"
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
	"github.com/skomerdb/skomer/internal/store/storetest"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// clinic is a place with a table, and the configuration that reaches it.
type clinic struct {
	table, overlay string
	catalog, own   map[string]string // keys for the table and for the overlay
	writer         store.Store       // of the table; nil: it is there
}

// examine writes the table and the configuration and asks doctor.
func (c clinic) examine(t *testing.T, args ...string) (*shell, *diagnosis, int) {
	t.Helper()
	s := newShell(t)
	if c.writer != nil {
		made(t, c.writer, c.table)
	}
	config := map[string]any{"default-catalog": "c", "overlay-root": c.overlay, "overlay-store": c.own, "catalog": map[string]any{"c": c.catalog}}
	text, err := json.Marshal(config) // which is YAML, too
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("skomer.yaml", text, 0o600))
	r := s.try(append([]string{"doctor", "-o", "json", c.table}, args...)...)
	var d diagnosis
	require.NoError(t, json.Unmarshal([]byte(r.out), &d), "%s%s", r.out, r.err)
	return s, &d, r.code
}

// made writes a table with rows.
func made(t *testing.T, s store.Store, location string) {
	t.Helper()
	tabletest.CreateIn(t, storetest.Rand(t), s, location).Append(t, 3, 50)
}

// find is the check of a name.
func (d *diagnosis) find(t *testing.T, name string) skomer.Check {
	t.Helper()
	for _, c := range d.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q in %+v", name, d.Checks)
	return skomer.Check{}
}

// well examines a place at which nothing is wrong, and uses it.
func (c clinic) well(t *testing.T, policies ...string) {
	t.Helper()
	s, d, code := c.examine(t, "--print-iam")
	require.Zero(t, code, "%+v", d.Checks)
	require.True(t, d.Healthy)
	for _, check := range d.Checks {
		if check.Name != "mount" {
			require.Equal(t, skomer.Well, check.Verdict, "%+v", check)
			require.NotEmpty(t, check.Reason, "%+v", check)
		}
	}
	for _, name := range []string{
		"version", "configuration", "table", "table store", "table: ranges", "table: If-Match", "table: list", "data file: ranges", "overlay store",
		"overlay: put if absent", "overlay: put if absent, raced", "overlay: compare and swap", "overlay: read", "overlay: list", "overlay: delete", "clock",
	} {
		d.find(t, name)
	}
	require.Equal(t, skomer.Warning, d.find(t, "mount").Verdict)
	require.Len(t, d.Policies, len(policies))
	for i, want := range policies {
		require.Contains(t, string(d.Policies[i].Document), want)
	}
	s.run("mount", c.table)
	text := s.run("doctor", c.table)
	require.Contains(t, text, "version 1, 0 indexes")
	require.NotContains(t, text, "warn")
	if c.writer == nil {
		return
	}
	infos, err := c.writer.List(t.Context(), c.table+"/metadata/", "", 100)
	require.NoError(t, err)
	looked := 0
	for _, i := range infos {
		if strings.HasSuffix(i.Key, ".avro") {
			require.Contains(t, s.run("inspect", i.Key), "manifest")
			looked++
		}
	}
	require.Positive(t, looked)
}

func TestDoctorLocal(t *testing.T) {
	dir := t.TempDir()
	s := newShell(t)
	clinic{table: s.flights, overlay: dir + "/overlays"}.well(t)
	left, err := filepath.Glob(dir + "/overlays/*/doctor")
	require.NoError(t, err)
	require.Empty(t, left)
}

func s3Keys(o s3.Options) map[string]string {
	return map[string]string{
		"s3.endpoint": o.Endpoint, "s3.region": "us-east-1", "s3.access-key-id": o.AccessKey, "s3.secret-access-key": "secret",
	}
}

func s3Clinic(t *testing.T, around func(http.Handler) http.Handler) clinic {
	server := s3test.Start(t, around, "lake", "overlays")
	keys := s3Keys(server.Options)
	return clinic{table: "s3://lake/web/flights", overlay: "s3://overlays/skomer", catalog: keys, own: keys, writer: s3.New(server.Options)}
}

func TestDoctorS3(t *testing.T) {
	s3Clinic(t, nil).well(t, "arn:aws:s3:::lake/web/flights/*", "arn:aws:s3:::overlays/skomer/")
}

func TestDoctorGoogle(t *testing.T) {
	server := gcstest.Start(t, nil, "lake", "overlays")
	expires := time.Now().Add(time.Hour)
	keys := map[string]string{
		"gcs.service.host": server.Options.Endpoint, "gcs.oauth2.token": "token", "gcs.oauth2.token-expires-at": fmt.Sprint(expires.UnixMilli()),
	}
	c := clinic{table: "gs://lake/web/flights", overlay: "gs://overlays/skomer", catalog: keys, own: keys, writer: gcs.New(server.Options)}
	c.well(t, "buckets/lake/objects/web/flights/", "buckets/overlays/objects/skomer/")
	_, d, _ := c.examined(t)
	require.Contains(t, d.find(t, "table store").Reason, expires.UTC().Format(time.RFC3339), "when credentials end is told")
}

// examined is examine of a table that is there.
func (c clinic) examined(t *testing.T) (*shell, *diagnosis, int) {
	c.writer = nil
	return c.examine(t)
}

func TestInteropDoctorAzure(t *testing.T) {
	server := azuretest.Start(t, nil, "lake", "overlays")
	keys := map[string]string{
		"adls.account-name": azuretest.Account, "adls.account-key": azuretest.Key,
		"adls.blob-storage-scheme": "http", "adls.blob-storage-authority": server.Authority,
	}
	at := "@" + azuretest.Account + ".dfs.core.windows.net/"
	c := clinic{
		table: "abfss://lake" + at + "web/flights", overlay: "abfss://overlays" + at + "skomer", catalog: keys, own: keys,
		writer: azure.New(server.Options),
	}
	c.well(t, "containers/lake", "containers/overlays")
}

// refusing answers some requests with a status.
func refusing(status int, when func(*http.Request) bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if when(r) && !strings.Contains(r.Header.Get("Authorization"), "Credential=writer/") {
				w.WriteHeader(status)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// TestDoctorFindsTrouble plants one fault after another and looks where it is found.
func TestDoctorFindsTrouble(t *testing.T) {
	overlays := func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/overlays") }
	lake := func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/lake") }
	for name, c := range map[string]struct {
		around  func(http.Handler) http.Handler
		check   string
		verdict skomer.Verdict
		says    string // in the reason or the fix
	}{
		"overlay is read-only": {
			refusing(403, func(r *http.Request) bool { return overlays(r) && r.Method == http.MethodPut }),
			"overlay: put if absent", skomer.Failed, "s3:PutObject on arn:aws:s3:::overlays/skomer/",
		},
		"overlay cannot be read": {
			refusing(403, func(r *http.Request) bool {
				return overlays(r) && r.Method == http.MethodGet && !r.URL.Query().Has("list-type")
			}),
			"overlay: read", skomer.Failed, "s3:GetObject on arn:aws:s3:::overlays/skomer/",
		},
		"overlay cannot be listed": {
			refusing(403, func(r *http.Request) bool { return overlays(r) && r.URL.Query().Has("list-type") }),
			"overlay: list", skomer.Failed, "s3:ListBucket on arn:aws:s3:::overlays",
		},
		"overlay cannot be cleaned": {
			refusing(403, func(r *http.Request) bool { return overlays(r) && r.URL.Query().Has("delete") }),
			"overlay: delete", skomer.Warning, "s3:DeleteObject",
		},
		"no conditional writes": {
			func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					r.Header.Del("If-None-Match")
					if r.Method == http.MethodPut {
						r.Header.Del("If-Match")
					}
					next.ServeHTTP(w, r)
				})
			},
			"overlay: put if absent", skomer.Failed, "conditional writes",
		},
		"table is denied":    {refusing(403, lake), "table", skomer.Failed, "arn:aws:s3:::lake"},
		"table is not there": {refusing(404, lake), "table", skomer.Failed, ""},
		"data files are denied": {
			refusing(403, func(r *http.Request) bool { return lake(r) && strings.HasSuffix(r.URL.Path, ".parquet") }),
			"data file: describe", skomer.Failed, "s3:GetObject on arn:aws:s3:::lake/web/flights/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			place := s3Clinic(t, c.around)
			o := s3.Options{Endpoint: place.catalog["s3.endpoint"], Region: "us-east-1", AccessKey: "writer", Secret: "secret"}
			place.writer = s3.New(o)
			_, d, code := place.examine(t)
			found := d.find(t, c.check)
			require.Equal(t, c.verdict, found.Verdict, "%+v", d.Checks)
			require.Contains(t, found.Reason+found.Fix, c.says, "%+v", found)
			require.Equal(t, c.verdict != skomer.Failed, d.Healthy)
			require.Equal(t, map[bool]int{true: exitOK, false: exitUnhealthy}[d.Healthy], code)
		})
	}
}

// TestDoctorListingIsOptional: a table that is opened by its metadata.json needs no listing.
func TestDoctorListingIsOptional(t *testing.T) {
	place := s3Clinic(t, refusing(403, func(r *http.Request) bool {
		return strings.HasPrefix(r.URL.Path, "/lake") && r.URL.Query().Has("list-type")
	}))
	o := s3.Options{Endpoint: place.catalog["s3.endpoint"], Region: "us-east-1", AccessKey: "writer", Secret: "secret"}
	made(t, s3.New(o), place.table)
	infos, err := s3.New(o).List(t.Context(), place.table+"/metadata/", "", 100)
	require.NoError(t, err)
	for _, i := range infos {
		if strings.HasSuffix(i.Key, ".json") {
			place.table = i.Key
		}
	}
	_, d, code := place.examined(t)
	require.Zero(t, code, "%+v", d.Checks)
	require.Equal(t, skomer.Warning, d.find(t, "table: list").Verdict)
}

func TestDoctorOfTheConfiguration(t *testing.T) {
	s := newShell(t)
	text := s.run("doctor")
	require.Contains(t, text, "no skomer.yaml")
	require.Contains(t, text, "overlay root")
	require.NoError(t, os.WriteFile("skomer.yaml", []byte("nonsense: [\n"), 0o600))
	r := s.try("doctor")
	require.Equal(t, exitUnhealthy, r.code)
	require.Contains(t, r.out, "fail")
	require.NoError(t, os.WriteFile("skomer.yaml", []byte("catalog: {prod: {type: rest, uri: 'http://127.0.0.1:1'}}\n"), 0o600))
	r = s.try("doctor")
	require.Equal(t, exitUnhealthy, r.code)
	require.Contains(t, r.out, "catalog prod")
	require.Contains(t, r.out, "cannot be reached")
}
