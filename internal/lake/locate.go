package lake

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
)

const (
	hintName    = "version-hint.text"
	maxHint     = 1 << 10 // bytes of a version hint
	listPage    = 1000
	maxListed   = 1_000_000
	hintMissing = -1
)

var (
	// Hadoop tables number their versions: vN.metadata.json, vN.gz.metadata.json or vN.metadata.json.gz.
	numbered = regexp.MustCompile(`^v(\d{1,18})(\.gz)?\.metadata\.json(\.gz)?$`)
	// Catalogs name them NNNNN-<uuid>.metadata.json, zero-padded, compressed ones as above.
	catalogued = regexp.MustCompile(`^(\d{1,18})-.+\.metadata\.json(\.gz)?$`)
)

// newestMetadata finds the current metadata.json of a table folder: by its version hint (which may lag, so newer numbered
// versions win), else the highest vN, else the one newest NNNNN-<uuid>, else the only file.
func (l *Lake) newestMetadata(ctx context.Context, table string) (string, error) {
	dir := table + "/metadata/"
	hint, err := l.hint(ctx, dir)
	if err != nil {
		return "", err
	}
	names, err := l.list(ctx, dir)
	if err != nil {
		return "", err
	}
	return choose(table, dir, hint, names)
}

// hint reads the version hint; "" if the table has none.
func (l *Lake) hint(ctx context.Context, dir string) (string, error) {
	b, err := l.readAll(ctx, dir+hintName)
	switch {
	case fault.Is(err, fault.NotFound):
		return "", nil
	case err != nil:
		return "", err
	case len(b) > maxHint:
		return "", fault.New(fault.Corrupt, dir+hintName, "%d bytes are no version hint", len(b))
	}
	return strings.TrimSpace(string(b)), nil
}

// list returns the names of the files in dir.
func (l *Lake) list(ctx context.Context, dir string) ([]string, error) {
	s, key, err := l.resolve(dir)
	if err != nil {
		return nil, err
	}
	key = strings.TrimSuffix(key, "/") + "/"
	var names []string
	for after := ""; len(names) < maxListed; {
		page, err := s.List(ctx, key, after, listPage)
		if fault.Is(err, fault.NotFound) {
			return names, nil
		}
		if err != nil {
			return nil, fault.About(dir, err)
		}
		for _, info := range page {
			names = append(names, strings.TrimPrefix(info.Key, key))
		}
		if len(page) < listPage {
			return names, nil
		}
		after = page[len(page)-1].Key
	}
	return nil, fault.New(fault.Exhausted, dir, "more than %d files in the metadata folder", maxListed).
		WithFix("give the metadata.json itself")
}

func choose(table, dir, hint string, names []string) (string, error) {
	version := hintMissing
	if hint != "" {
		if n, err := strconv.Atoi(strings.TrimPrefix(hint, "v")); err == nil && n >= 0 {
			version = n
		} else if name, ok := hinted(hint, names); ok {
			return dir + name, nil
		}
	}
	if name := newestNumbered(names, version); name != "" {
		return dir + name, nil
	}
	rivals := newestCatalogued(names)
	switch {
	case len(rivals) > 1:
		return "", fault.New(fault.Invalid, table, "its metadata files do not say which is the newest: %s or %s", rivals[0], rivals[1]).
			WithFix("give the metadata.json itself")
	case len(rivals) == 1:
		return dir + rivals[0], nil
	case hint != "":
		return "", fault.New(fault.NotFound, table, "its version hint says %q, but no such metadata file is there", hint)
	}
	return "", fault.New(fault.NotFound, table, "no metadata file in %s", dir).
		WithFix("give the folder of an Iceberg table, a metadata.json, or catalog.namespace.table")
}

// hinted finds the file of a hint that holds a name rather than a number.
func hinted(hint string, names []string) (string, bool) {
	for _, want := range []string{hint, hint + ".metadata.json", hint + ".gz.metadata.json", hint + ".metadata.json.gz"} {
		for _, name := range names {
			if name == want {
				return name, true
			}
		}
	}
	return "", false
}

// newestNumbered is the highest vN that can be reached from the hint without a gap, as Hadoop tables advance; the highest
// of all without a hint or if the hint's own version is gone.
func newestNumbered(names []string, hint int) string {
	byVersion := map[int]string{}
	highest := -1
	for _, name := range names {
		if m := numbered.FindStringSubmatch(name); m != nil {
			n, _ := strconv.Atoi(m[1])
			byVersion[n] = name
			highest = max(highest, n)
		}
	}
	if byVersion[hint] == "" {
		return byVersion[highest]
	}
	for byVersion[hint+1] != "" {
		hint++
	}
	return byVersion[hint]
}

// newestCatalogued is the files that may be the newest: those of the highest number, and all whose names follow no rule.
func newestCatalogued(names []string) []string {
	highest := -1
	var numbered, others []string
	for _, name := range names {
		m := catalogued.FindStringSubmatch(name)
		if m == nil {
			if isMetadataFile(name) && !strings.Contains(name, "/") {
				others = append(others, name)
			}
			continue
		}
		switch n, _ := strconv.Atoi(m[1]); {
		case n > highest:
			highest, numbered = n, []string{name}
		case n == highest:
			numbered = append(numbered, name)
		}
	}
	return append(numbered, others...)
}
