package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/skomerdb/skomer/internal/column"
)

// Maps reports whether a name mapping gives a name to field id and to all that it lies in. A column that it passes over is not in any
// file without field ids, whatever a manifest counted of it.
func Maps(m []MappedField, id int) bool {
	return slices.ContainsFunc(m, func(f MappedField) bool {
		return len(f.Names) > 0 && (f.ID == id || Maps(f.Fields, id))
	})
}

// MappingDigest identifies a table's name mapping: how columns of files without field ids are found depends on it. "none"
// where the table has no mapping.
func MappingDigest(m []MappedField) string {
	if m == nil {
		return "none"
	}
	b, err := json.Marshal(m)
	if err != nil {
		return "none"
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// AbsentState is what rows of files without a column hold, as lineage records it: null, or the initial default.
func AbsentState(initial *column.Value) string {
	if initial == nil {
		return "null"
	}
	return "default " + hex.EncodeToString(column.AppendKey(nil, *initial))
}
