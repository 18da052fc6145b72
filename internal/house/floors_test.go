package house

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/skomerdb/skomer"

// room is one package (with the packages in folders below it) and what it may use.
type room struct {
	floor int
	upTo  int      // may use every room of floors 0 to upTo
	also  []string // and these rooms, which stand on its own floor or above upTo
}

// rooms is the plan of ARCHITECTURE.md. The key "" is the root package.
var rooms = map[string]room{
	"internal/fault":    {floor: 0, upTo: -1},
	"internal/bytescan": {floor: 0, upTo: -1, also: []string{"internal/fault"}},
	"internal/simd":     {floor: 0, upTo: -1},

	"internal/column":     {floor: 1, upTo: 0},
	"internal/rowset":     {floor: 1, upTo: 0},
	"internal/predicate":  {floor: 1, upTo: 0, also: []string{"internal/column", "internal/analysis", "internal/expression"}},
	"internal/facts":      {floor: 1, upTo: 0, also: []string{"internal/column", "internal/predicate"}},
	"internal/lineage":    {floor: 1, upTo: 0},
	"internal/telemetry":  {floor: 1, upTo: 0},
	"internal/analysis":   {floor: 1, upTo: 0},
	"internal/expression": {floor: 1, upTo: 0, also: []string{"internal/column", "internal/analysis"}},

	"internal/store":  {floor: 2, upTo: 0},
	"internal/puffin": {floor: 2, upTo: 0},

	"internal/index":   {floor: 3, upTo: 1},
	"internal/filemap": {floor: 3, upTo: 1, also: []string{"internal/index"}},

	"internal/lake":      {floor: 4, upTo: 2},
	"internal/parquetio": {floor: 4, upTo: 2},
	"internal/bundle":    {floor: 4, upTo: 3},
	"internal/overlay":   {floor: 4, upTo: 2},

	"internal/mask": {floor: 5, upTo: 4},
	"internal/plan": {floor: 5, upTo: 1, also: []string{"internal/index", "internal/filemap"}},

	"internal/wave":  {floor: 6, upTo: 4},
	"internal/scan":  {floor: 6, upTo: 5, also: []string{"internal/wave"}},
	"internal/rank":  {floor: 6, upTo: 5, also: []string{"internal/wave", "internal/scan"}},
	"internal/build": {floor: 6, upTo: 4},

	"internal/maintain": {floor: 7, upTo: 6},
	"internal/advise":   {floor: 7, upTo: 6, also: []string{"internal/maintain"}},

	"": {floor: 8, upTo: 7},

	"examples":        {floor: 0, upTo: -1},
	"api":             {floor: 9, upTo: 8},
	"internal/server": {floor: 9, upTo: 8, also: []string{"api"}},

	"internal/cli": {floor: 10, upTo: 9},
	"cmd":          {floor: 11, upTo: 10},
}

// beside holds what stands outside the house: tests, programs that make fixtures, measurements. Nothing in the house imports them.
var beside = map[string]string{
	"internal/house":     "tests only",
	"internal/interop":   "asks other engines, for tests",
	"internal/realdata":  "finds real files for tests",
	"internal/tabletest": "makes random tables for tests",
	"scripts":            "programs that make fixtures and run checks",
	"bench":              "measurements",
}

// libraries may be imported only by the named rooms, so that one room knows the library's traps and can replace it.
var libraries = map[string][]string{
	"github.com/apache/iceberg-go":        {"internal/lake"},
	"github.com/apache/arrow-go":          {"", "internal/cli", "internal/lake"},
	"github.com/parquet-go/parquet-go":    {"internal/parquetio", "internal/index", "internal/cli"},
	"github.com/alecthomas/participle":    {"internal/predicate"},
	"github.com/spf13/cobra":              {"internal/cli"},
	"github.com/jedib0t/go-pretty":        {"internal/cli"},
	"github.com/schollz/progressbar":      {"internal/cli"},
	"gopkg.in/yaml.v3":                    {"internal/cli", "internal/lake"},
	"modernc.org/sqlite":                  {"internal/lake"},
	"github.com/RoaringBitmap/roaring":    {"internal/rowset", "internal/index", "internal/filemap", "internal/overlay", "internal/mask"},
	"github.com/stretchr/testify":         {"internal/store"}, // store/storetest is a test suite
	"github.com/aws/aws-sdk-go-v2":        {"internal/store"},
	"github.com/aws/smithy-go":            {"internal/store"},
	"github.com/johannesboyne/gofakes3":   {"internal/store"}, // store/s3/s3test runs a server for tests
	"github.com/fsouza/fake-gcs-server":   {"internal/store"}, // and so does store/gcs/gcstest
	"github.com/Azure/azure-sdk-for-go":   {"internal/store"},
	"golang.org/x/oauth2":                 {"internal/store"},
	"github.com/marcboeker/go-duckdb":     {},
	"github.com/duckdb/duckdb-go":         {},
	"github.com/apache/datasketches-go":   {"internal/index"},
	"github.com/pierrec/lz4":              {"internal/puffin", "internal/parquetio"},
	"github.com/clipperhouse/uax29":       {"internal/analysis"},
	"github.com/cespare/xxhash":           {"internal/index", "internal/filemap", "internal/store"},
	"golang.org/x/sys/cpu":                {"internal/simd"},
	"github.com/prometheus/client_golang": {"", "internal/telemetry", "internal/cli"},
	"github.com/klauspost/compress/zstd":  {"internal/puffin", "internal/parquetio", "internal/index", "internal/lake", "internal/overlay", "internal/filemap"},
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath, Dir string
	Imports         []string
	GoFiles         []string
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Imports,GoFiles", "./...")
	cmd.Dir = root()
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	require.NotEmpty(t, all)
	return all
}

// root is the folder of the repository.
func root() string {
	_, self, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(self), "..", "..")
}

// roomOf is the room of an import path of this module, by the longest key that is the path or a folder above it.
func roomOf(importPath string) (key string, ok bool) {
	rel := strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
	for rel != "" {
		if _, ok := rooms[rel]; ok {
			return rel, true
		}
		if _, ok := beside[rel]; ok {
			return rel, true
		}
		at := strings.LastIndex(rel, "/")
		if at < 0 {
			return "", importPath == module
		}
		rel = rel[:at]
	}
	return "", importPath == module
}

func inModule(importPath string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

func TestEveryPackageHasARoom(t *testing.T) {
	for _, p := range listPackages(t) {
		if _, ok := roomOf(p.ImportPath); !ok {
			t.Errorf("%s is in no room: add it to the table of floors_test.go and to ARCHITECTURE.md, or move it", p.ImportPath)
		}
	}
}

func TestImportsPointDown(t *testing.T) {
	edges := 0
	for _, p := range listPackages(t) {
		from, _ := roomOf(p.ImportPath)
		if _, outside := beside[from]; outside {
			continue
		}
		for _, to := range p.Imports {
			if !inModule(to) {
				continue
			}
			edges++
			if why := refuse(from, p.ImportPath, to); why != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, to, why)
			}
		}
	}
	require.Greater(t, edges, 10, "too few imports were seen for this test to mean anything")
}

// refuse is why package importer in room from may not import the package to, or "".
func refuse(from, importer, to string) string {
	key, ok := roomOf(to)
	if !ok {
		return "the imported package is in no room"
	}
	if duty, outside := beside[key]; outside {
		if isTestSuite(importer) {
			return ""
		}
		return "it stands beside the house (" + duty + ")"
	}
	if key == from {
		return refuseKind(importer, to)
	}
	me, target := rooms[from], rooms[key]
	if target.floor <= me.upTo || slices.Contains(me.also, key) {
		return ""
	}
	return "its room may not use that room; see the table in floors_test.go"
}

// isTestSuite is whether a package is only ever linked into tests.
func isTestSuite(importPath string) bool { return strings.HasSuffix(importPath, "test") }

// refuseKind holds kinds apart: below internal/index only the table of kinds imports a kind.
func refuseKind(importer, to string) string {
	const index = module + "/internal/index/"
	kind, isKind := strings.CutPrefix(to, index)
	self, inIndex := strings.CutPrefix(importer, index)
	if !isKind || !inIndex || self == "kinds" {
		return ""
	}
	first := func(path string) string { return strings.Split(path, "/")[0] }
	if first(self) == first(kind) || notKinds[first(kind)] {
		return ""
	}
	return "kinds do not import each other"
}

// notKinds is the folders below internal/index that kinds share.
var notKinds = map[string]bool{"quant": true, "indextest": true}

func TestLibrariesStayInTheirRooms(t *testing.T) {
	for _, p := range listPackages(t) {
		from, _ := roomOf(p.ImportPath)
		if _, outside := beside[from]; outside {
			continue
		}
		for _, to := range p.Imports {
			for lib, allowed := range libraries {
				if (to == lib || strings.HasPrefix(to, lib+"/")) && !slices.Contains(allowed, from) {
					t.Errorf("%s imports %s, which only %q may", p.ImportPath, to, allowed)
				}
			}
		}
	}
}

// TestTheTableIsSound makes sure that the plan itself points down.
func TestTheTableIsSound(t *testing.T) {
	for name, r := range rooms {
		require.Less(t, r.upTo, r.floor, name)
		for _, other := range r.also {
			o, ok := rooms[other]
			require.True(t, ok, "%s may use %s, which is no room", name, other)
			require.LessOrEqual(t, o.floor, r.floor, "%s may use %s, which stands above it", name, other)
			require.NotContains(t, o.also, name, "%s and %s may use each other", name, other)
		}
	}
	require.NotEmpty(t, refuse("internal/index", module+"/internal/index/bloom", module+"/internal/store"))
	require.NotEmpty(t, refuse("internal/index", module+"/internal/index/bloom", module+"/internal/index/zonemap"))
	require.NotEmpty(t, refuse("internal/column", module+"/internal/column", module+"/internal/rowset"))
	require.Empty(t, refuse("internal/scan", module+"/internal/scan", module+"/internal/wave"))
}
