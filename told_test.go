package skomer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

// logged is the lines of a log as JSON, by message.
func logged(t *testing.T, out *bytes.Buffer) map[string][]map[string]any {
	t.Helper()
	lines := map[string][]map[string]any{}
	for d := json.NewDecoder(bytes.NewReader(out.Bytes())); d.More(); {
		var line map[string]any
		require.NoError(t, d.Decode(&line))
		require.NotEmpty(t, line["table"], line)
		lines[line["msg"].(string)] = append(lines[line["msg"].(string)], line)
	}
	out.Reset()
	return lines
}

// TestMaintenanceIsLogged: at level info a line for every publication and none where nothing happened; at debug what leads to it, and every
// object that a vacuum deletes.
func TestMaintenanceIsLogged(t *testing.T) {
	ctx := context.Background()
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		s := newSmall(t)
		for v := range int64(3) {
			s.add(t, v, v+10)
		}
		var out bytes.Buffer
		c, err := skomer.New(skomer.Config{
			OverlayRoot: s.overlays(), MaxStaleness: time.Nanosecond, Log: slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level})),
		})
		require.NoError(t, err)
		table, err := c.Open(ctx, s.Location(), skomer.TableOptions{})
		require.NoError(t, err)
		t.Cleanup(table.Close)
		require.NoError(t, table.Mount(ctx))
		bloom, err := table.AddIndex(ctx, "bloom(v)")
		require.NoError(t, err)
		_, err = table.AddIndex(ctx, "zonemap(v)")
		require.NoError(t, err)
		require.Empty(t, logged(t, &out))

		r := synced(t, table, skomer.SyncOptions{})
		lines := logged(t, &out)
		require.Len(t, lines["published"], r.Bundles)
		p := lines["published"][0]
		require.Equal(t, "INFO", p["level"])
		require.NotEmpty(t, p["build"])
		require.Len(t, p["index"], 2)
		require.Contains(t, p["index"], bloom.ID)
		require.EqualValues(t, r.FilesIndexed, p["files"])
		require.EqualValues(t, r.Artifacts, p["artifacts"])
		require.Positive(t, p["bytes"])
		require.LessOrEqual(t, p["version"], float64(r.OverlayVersion))
		require.Contains(t, p, "seconds")
		debug := []string{"declared a build", "built a unit", "ended a build"}
		for _, what := range debug {
			if level == slog.LevelInfo {
				require.Empty(t, lines[what])
				continue
			}
			require.Len(t, lines[what], 1, what)
			require.Equal(t, p["build"], lines[what][0]["build"], what)
			require.Equal(t, "DEBUG", lines[what][0]["level"], what)
		}

		synced(t, table, skomer.SyncOptions{})
		require.Empty(t, logged(t, &out), "nothing happened")

		_, err = table.DropIndex(ctx, bloom.ID)
		require.NoError(t, err)
		v, err := table.Vacuum(ctx, skomer.VacuumOptions{Retain: 1, Grace: -1})
		require.NoError(t, err)
		deleted := 0
		for _, n := range v.Deleted {
			deleted += n.Objects
		}
		require.Positive(t, deleted)
		lines = logged(t, &out)
		if level == slog.LevelInfo {
			require.Empty(t, lines)
			continue
		}
		require.Len(t, lines["deleted"], deleted)
		require.NotEmpty(t, lines["deleted"][0]["object"])
		require.NotEmpty(t, lines["deleted"][0]["reason"])
	}
}

// TestStatusCountsEveryObject: what status counts is, after a vacuum, what lies in the overlay's folders.
func TestStatusCountsEveryObject(t *testing.T) {
	s := newOfEveryKind(t)
	table := s.open(t)
	_, err := table.Vacuum(context.Background(), skomer.VacuumOptions{Retain: 1, Grace: -1})
	require.NoError(t, err)
	st, err := table.Status(context.Background())
	require.NoError(t, err)
	there := map[string]int{}
	for path := range s.named(t) {
		there[objectSort(path)]++
	}
	o := st.Objects
	counted := map[string]int{
		"bundle": o["bundle"].Objects, "chunks": o["chunk"].Objects + o["list"].Objects, "facts": o["facts"].Objects,
		"file map": o["filemap"].Objects, "refused": o["refused"].Objects, "stats": o["sketch"].Objects, "versions": 1,
	}
	require.Equal(t, there, counted)
	require.Len(t, o, 7, "every sort is counted once")
	require.Equal(t, st.Bundles, o["bundle"].Objects)
	for sort, n := range o {
		require.Positive(t, n.Bytes, sort)
	}
}
