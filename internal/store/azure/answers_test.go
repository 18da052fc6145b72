package azure_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/azure"
	"github.com/skomerdb/skomer/internal/store/azure/azuretest"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

var secret = base64.StdEncoding.EncodeToString([]byte("secret"))

// served is a store in front of a handler.
func served(t *testing.T, h http.HandlerFunc) *azure.Store {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return azure.New(azure.Options{Account: azuretest.Account, Key: secret, Endpoint: server.URL + "/" + azuretest.Account})
}

func TestAnswersAreClassified(t *testing.T) {
	const key = location + "d/o"
	for _, c := range []struct {
		status      int
		code        string
		read, write fault.Class
		retry       bool
		fix         string // of the read
	}{
		{404, "BlobNotFound", fault.NotFound, fault.Conflict, false, ""},
		{404, "ContainerNotFound", fault.NotFound, fault.NotFound, false, "container's name"},
		{403, "AuthorizationPermissionMismatch", fault.Denied, fault.Denied, false, "blobs/read on the container container of the account account"},
		{403, "AuthenticationFailed", fault.Denied, fault.Denied, false, "account key"},
		{401, "NoAuthenticationInformation", fault.Denied, fault.Denied, false, "az login"},
		{412, "ConditionNotMet", fault.Stale, fault.Conflict, false, ""},
		{409, "BlobAlreadyExists", fault.Conflict, fault.Conflict, false, ""},
		{400, "InvalidBlockList", fault.Conflict, fault.Conflict, false, ""},
		{503, "ServerBusy", fault.Exhausted, fault.Exhausted, true, ""},
		{503, "", fault.Exhausted, fault.Unclassified, true, ""},
		{429, "", fault.Exhausted, fault.Exhausted, true, ""},
		{500, "OperationTimedOut", fault.Unclassified, fault.Unclassified, true, ""},
		{500, "InternalError", fault.Unclassified, fault.Unclassified, true, ""},
		{409, "BlobArchived", fault.Unsupported, fault.Unsupported, false, "tier"},
		{400, "InvalidHeaderValue", fault.Invalid, fault.Invalid, false, ""},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			var asked atomic.Int64
			s := served(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				io.Copy(io.Discard, r.Body)
				if c.code != "" {
					w.Header().Set("X-Ms-Error-Code", c.code)
				}
				w.WriteHeader(c.status)
			})
			r := s.Fetch(t.Context(), []store.Read{{Key: key, Spans: []store.Span{{Len: 4}}}})[0]
			require.Equal(t, c.read, fault.ClassOf(r.Err), "%v", r.Err)
			require.Equal(t, c.retry, fault.Retryable(r.Err))
			require.Contains(t, r.Err.Error(), key)
			require.Contains(t, fault.FixOf(r.Err), c.fix)
			_, err := s.PutIf(t.Context(), key, "tag", []byte("x"))
			require.Equal(t, c.write, fault.ClassOf(err), "%v", err)
			require.Equal(t, c.retry, fault.Retryable(err))
			require.EqualValues(t, 2, asked.Load(), "every request is sent once")
		})
	}
}

func TestNoServer(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	s := azure.New(azure.Options{Anonymous: true, Endpoint: server.URL})
	err := s.Stat(t.Context(), []string{"az://c@a/o"})[0].Err
	require.True(t, fault.Retryable(err), "%v", err)
}

func TestKeysOfOtherStoresAreRefused(t *testing.T) {
	s := azure.New(azure.Options{Anonymous: true})
	for _, key := range []string{
		"", "/bucket/o", "s3://b/o", "abfss://", "abfss://c@a.dfs.core.windows.net", "abfss://c@a.dfs.core.windows.net/", "az:///o", "az://c/o",
	} {
		require.Equal(t, fault.Invalid, fault.ClassOf(s.Stat(t.Context(), []string{key})[0].Err), key)
		require.Equal(t, fault.Invalid, fault.ClassOf(s.Fetch(t.Context(), []store.Read{{Key: key}})[0].Err), key)
		require.Equal(t, fault.Invalid, fault.ClassOf(s.Delete(t.Context(), []string{key})), key)
	}
	require.Contains(t, fault.FixOf(s.Stat(t.Context(), []string{"az://c/o"})[0].Err), "adls.account-name")
}

// TestO50NamesGoVerbatim looks at what is sent, by every scheme.
func TestO50NamesGoVerbatim(t *testing.T) {
	var path atomic.Value
	s := served(t, func(w http.ResponseWriter, r *http.Request) {
		path.Store(r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	})
	for _, name := range []string{"dir%20x/f.parquet", "a b", "+", "#", "=", "é", "a//b", "a/../b", "%252F", "q?x=1"} {
		for _, root := range []string{location, "wasbs://container@account.blob.core.windows.net/", "az://container/", "ABFS://container/"} {
			s.Stat(t.Context(), []string{root + name})
			require.Equal(t, "/account/container/"+name, path.Load())
		}
	}
}

const listing = `<?xml version="1.0"?><EnumerationResults><Blobs>%s</Blobs><NextMarker/></EnumerationResults>`

func listed(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		kind := ""
		if strings.HasSuffix(n, "|") {
			n, kind = strings.TrimSuffix(n, "|"), "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata>"
		}
		fmt.Fprintf(&b, "<Blob><Name>%s</Name><Properties><Content-Length>1</Content-Length><Etag>0x1</Etag></Properties>%s</Blob>", n, kind)
	}
	return fmt.Sprintf(listing, b.String())
}

// TestListingsByFolder: accounts with a hierarchical namespace list folders, and what is in them before what sorts before the slash.
func TestListingsByFolder(t *testing.T) {
	var asked atomic.Int64
	s := served(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		io.WriteString(w, listed("d|", "d/a|", "d/a/x", "d/a-b", "d/b"))
	})
	names := func(after string, most int) []string {
		out := []string{}
		infos, err := s.List(t.Context(), location+"d", after, most)
		require.NoError(t, err)
		for _, i := range infos {
			out = append(out, strings.TrimPrefix(i.Key, location))
		}
		return out
	}
	require.Equal(t, []string{"d/a-b", "d/a/x", "d/b"}, names("", 10))
	require.EqualValues(t, 2, asked.Load())
	require.Equal(t, []string{"d/a-b"}, names("", 1))
	require.Equal(t, []string{"d/a/x", "d/b"}, names(location+"d/a-b", 10))
	require.Equal(t, []string{"d/b"}, names(location+"d/a/x", 10))
}

// TestWhereListingsStart: at or before the name in every order that a server may have.
func TestWhereListingsStart(t *testing.T) {
	var from atomic.Value
	s := served(t, func(w http.ResponseWriter, r *http.Request) {
		from.Store(r.URL.Query().Get("startFrom"))
		io.WriteString(w, listed())
	})
	for after, want := range map[string]string{
		"": "", "d-1/x": "d-1/x", "d-1/x/y": "d-1/x/y", "d-1/x-y": "d-1/x", "d-1/x/y.z": "d-1/x/y", "d-1/\xff": "d-1/", "c": "",
	} {
		if after != "" {
			after = location + after
		}
		_, err := s.List(t.Context(), location+"d-1/", after, 10)
		require.NoError(t, err)
		require.Equal(t, want, from.Load(), after)
	}
}

// TestListingsStartWhereTheyShould: the service is told where to start.
func TestListingsStartWhereTheyShould(t *testing.T) {
	var from atomic.Value
	s := served(t, func(w http.ResponseWriter, r *http.Request) {
		from.Store(r.URL.Query().Get("startFrom"))
		io.WriteString(w, listed("d/a", "d/b", "d/c"))
	})
	infos, err := s.List(t.Context(), location+"d/", location+"d/b", 10)
	require.NoError(t, err)
	require.Equal(t, "d/b", from.Load())
	require.Len(t, infos, 1)
	require.Equal(t, location+"d/c", infos[0].Key)
}

// TestSuffixesOfKnownBlobs: a suffix needs the blob's size, which is asked for once.
func TestSuffixesOfKnownBlobs(t *testing.T) {
	var heads atomic.Int64
	var asked atomic.Value
	s := served(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"0x1"`)
		if r.Method == http.MethodHead {
			heads.Add(1)
			w.Header().Set("Content-Length", "10")
			return
		}
		asked.Store(r.Header.Get("X-Ms-Range"))
		w.Header().Set("Content-Range", "bytes 7-9/10")
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, "789")
	})
	for _, tag := range []store.Tag{"", "0x1", "0x1"} {
		r := s.Fetch(t.Context(), []store.Read{{Key: location + "o", Tag: tag, Spans: []store.Span{store.Suffix(3)}}})[0]
		require.NoError(t, r.Err)
		require.Equal(t, "789", string(r.Data[0]))
		require.Equal(t, "bytes=7-9", asked.Load())
	}
	require.EqualValues(t, 1, heads.Load())
}

// TestInteropBlocks uploads blobs in blocks, two at once of one name: one wins, and its blocks are its own.
func TestInteropBlocks(t *testing.T) {
	server := azuretest.Start(t, nil, "container")
	server.Options.PartBytes = 1 << 20
	s := azure.New(server.Options)
	rnd := storetest.Rand(t)
	contents := make([][]byte, 2)
	for i := range contents {
		contents[i] = make([]byte, 3<<20+i)
		for k := range contents[i] {
			contents[i][k] = byte(rnd.Uint32())
		}
	}
	errs := make(chan error, 2)
	for _, b := range contents {
		go func() {
			_, err := s.PutNew(t.Context(), location+"o", bytes.NewReader(b))
			errs <- err
		}()
	}
	first, second := <-errs, <-errs
	if first == nil {
		first, second = second, first
	}
	require.NoError(t, second)
	require.Equal(t, fault.Conflict, fault.ClassOf(first), "%v", first)
	r := s.Fetch(t.Context(), []store.Read{{Key: location + "o"}})[0]
	require.NoError(t, r.Err)
	require.True(t, bytes.Equal(r.Data[0], contents[0]) || bytes.Equal(r.Data[0], contents[1]))
}

// TestInteropSignaturesAreRenewed: before they end, and when the server refuses one; a write is sent again whole.
func TestInteropSignaturesAreRenewed(t *testing.T) {
	server := azuretest.Start(t, nil, "container")
	var n atomic.Int64
	given := []string{server.SAS(t, "container", "racwd", -time.Hour), server.SAS(t, "container", "racwd", time.Hour)}
	o := azure.Options{Account: azuretest.Account, Endpoint: server.Options.Endpoint}
	o.Renew = func(_ context.Context, account string) (string, time.Time, error) {
		require.Equal(t, azuretest.Account, account)
		return given[min(n.Add(1), 2)-1], time.Now().Add(time.Hour), nil // the first has ended already
	}
	s := azure.New(o)
	_, err := s.PutNew(t.Context(), location+"o", strings.NewReader("content"))
	require.NoError(t, err)
	require.EqualValues(t, 2, n.Load())
	require.Equal(t, "content", string(s.Fetch(t.Context(), []store.Read{{Key: location + "o"}})[0].Data[0]))
	require.EqualValues(t, 2, n.Load(), "a signature is kept while it lasts")

	given[1] = server.SAS(t, "container", "racwd", 30*time.Second) // within the time in which signatures are renewed early
	o.Renew = func(context.Context, string) (string, time.Time, error) { n.Add(1); return given[1], time.Time{}, nil }
	n.Store(0)
	s = azure.New(o)
	for range 3 {
		require.NoError(t, s.Stat(t.Context(), []string{location + "o"})[0].Err)
	}
	require.EqualValues(t, 3, n.Load())

	o.Renew = func(context.Context, string) (string, time.Time, error) {
		return "", time.Time{}, errors.New("no more")
	}
	err = azure.New(o).Stat(t.Context(), []string{location + "o"})[0].Err
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "no more")
}

func TestFromProperties(t *testing.T) {
	for _, c := range []struct {
		in   map[string]string
		want azure.Options
	}{
		{nil, azure.Options{}},
		{map[string]string{"adls.account-name": "a", "adls.account-key": "k", "uri": "x"}, azure.Options{Account: "a", Key: "k"}},
		{
			map[string]string{"adls.sas-token": "one", "adls.sas-token.b": "two", "adls.sas-token.c.dfs.core.windows.net": "three"},
			azure.Options{SAS: map[string]string{"": "one", "b": "two", "c": "three"}},
		},
		{
			map[string]string{"adls.sas-token.b": "s", "adls.sas-token-expires-at-ms.b": "1000"},
			azure.Options{SAS: map[string]string{"b": "s"}, Expires: map[string]time.Time{"b": time.UnixMilli(1000)}},
		},
		{
			map[string]string{"adls.connection-string": "AccountName=a;AccountKey=k==;DefaultEndpointsProtocol=https"},
			azure.Options{Account: "a", Key: "k==", Endpoint: "https://a.blob.core.windows.net"},
		},
		{
			map[string]string{"adls.connection-string": "BlobEndpoint=http://h/a;SharedAccessSignature=sv=1&sig=2;AccountName=a"},
			azure.Options{Account: "a", SAS: map[string]string{"a": "sv=1&sig=2"}, Endpoint: "http://h/a"},
		},
		{
			map[string]string{"adls.account-name": "a", "adls.account-host": "a.dfs.fabric.microsoft.com"},
			azure.Options{Account: "a", Endpoint: "https://a.blob.fabric.microsoft.com"},
		},
		{
			map[string]string{"adls.account-name": "a", "adls.blob-storage-authority": ".blob.example.org"},
			azure.Options{Account: "a", Endpoint: "https://a.blob.example.org"},
		},
		{
			map[string]string{"adls.account-name": "a", "adls.blob-storage-authority": "h:10000", "adls.blob-storage-scheme": "http"},
			azure.Options{Account: "a", Endpoint: "http://h:10000/a"},
		},
		{
			map[string]string{"adls.tenant-id": "t", "adls.client-id": "c", "adls.client-secret": "s"},
			azure.Options{Tenant: "t", ClientID: "c", Secret: "s"},
		},
	} {
		got, err := azure.FromProperties(c.in)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	for _, bad := range []map[string]string{
		{"adls.account-key": "k"},
		{"adls.client-secret": "s"},
		{"adls.connection-string": "x"},
		{"adls.connection-string": "AccountName=a"},
		{"adls.anonymous": "perhaps"},
		{"adls.sas-token-expires-at-ms.a": "soon"},
	} {
		_, err := azure.FromProperties(bad)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", bad)
	}
}
