package tabletest

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// Compact rewrites some data files of a table without deletes as one, whole files one after the other in a random order. With change it
// also changes rows on the way, as an update, a delete or a sort would: one row takes the values of another, one is left out, or two
// change places. It reports whether it changed any.
func (t *Table) Compact(tb testing.TB, change bool) (changed bool) {
	tb.Helper()
	order := t.rng.Perm(len(t.Files))[:1+t.rng.IntN(len(t.Files))]
	f := DataFile{
		Path: t.Dir + "/data/" + fmt.Sprintf("%08x.parquet", t.rng.Uint32()), domains: t.Files[order[0]].domains,
		gone: deleted{positions: map[int]bool{}, keys: map[int]bool{}}, sequence: t.Writer.LastSequence + 1,
	}
	var remove []string
	for _, i := range order {
		f.Rows = append(f.Rows, t.Files[i].Rows...)
		remove = append(remove, t.Files[i].Path)
	}
	if n := len(f.Rows); change && n > 1 {
		changed = true
		a, b := t.rng.IntN(n), t.rng.IntN(n)
		switch t.rng.IntN(3) {
		case 0:
			f.Rows[a] = f.Rows[b]
		case 1:
			f.Rows = slices.Delete(f.Rows, a, a+1)
		default:
			f.Rows[a], f.Rows[b] = f.Rows[b], f.Rows[a]
		}
	}
	stated := t.put(tb, &f, f.Path)
	if _, err := t.Writer.Replace(context.Background(), remove, stated); err != nil {
		tb.Fatal(err)
	}
	t.Files = slices.DeleteFunc(t.Files, func(g DataFile) bool { return slices.Contains(remove, g.Path) })
	t.Files = append(t.Files, f)
	return changed
}
