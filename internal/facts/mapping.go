package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

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
