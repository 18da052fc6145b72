package build

import (
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
)

// cut ends the unit with the file that was finished last, where the unit has had enough: the files behind it go to Later. Artifacts over many
// files end where their rows do.
func (w *writing) cut(last *source) (bool, error) {
	n := slices.Index(w.files, last) + 1
	if w.unit.Enough == nil || len(w.unit.Carry) > 0 || n == len(w.files) || !w.unit.Enough() {
		return false, nil
	}
	if slices.ContainsFunc(w.tiered, func(m *making) bool { _, ok := m.builder.(index.Cutter); return !ok }) {
		return false, nil
	}
	for _, m := range w.tiered {
		if err := m.builder.(index.Cutter).Cut(last.first + last.rows); err != nil {
			return false, fault.About(m.index.Definition.ID, err)
		}
		m.files = m.files[:n]
	}
	for _, s := range w.files[n:] {
		w.result.Later = append(w.result.Later, s.File)
	}
	w.files = w.files[:n]
	return true, nil
}
