package bitmap

import "github.com/skomerdb/skomer/internal/index"

// Merge declines: the artifact is built from the data.
func (k Kind) Merge(index.Spec, []index.Source, *index.OrdinalMap, index.Budget, index.Sink) ([]byte, string, error) {
	return nil, "artifacts of this kind are built from the data", nil
}
