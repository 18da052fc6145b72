package lake

import (
	"fmt"
	"path/filepath"
	"testing"
)

func TestEveryRealTableOpens(t *testing.T) {
	for _, dir := range tableDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			name := dir
			if filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(dir)))) == "equality_delete_extra_column" {
				name = filepath.Join(dir, "metadata/vfinal.metadata.json")
			}
			_, table := openReal(t, dir, name)
			s := snapshotOf(t, table, Current())
			rows := int64(0)
			for _, r := range s.Files.Records {
				rows += r
			}
			t.Log(fmt.Sprint(filepath.Base(dir), "v", table.FormatVersion(), "snaps", len(table.Snapshots()), "files", s.Files.Len(), "rows", rows, "deletes", s.Deletes.Len()))
		})
	}
}
