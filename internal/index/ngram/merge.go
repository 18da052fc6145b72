package ngram

import (
	"unicode"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// Merge joins the dictionaries and sends every posting through the map, one trigram at a time: chunks whose rows stay together are copied
// as they are, unless they are few. A trigram that is too frequent in a source stays so. It declines where null rows were not kept and some
// rows are gone, or where the rows of one trigram outgrow a quarter of the budget. Of every source it holds a posting, at least 128 KiB.
func (k Kind) Merge(spec index.Spec, sources []index.Source, m *index.OrdinalMap, budget index.Budget, body index.Sink) ([]byte, string, error) {
	if _, err := index.Mergeable(name, &spec, sources, m, oneText); err != nil {
		return nil, "", err
	}
	j := joining{
		rows: spec.Rows, m: m, along: m.Stretches(), out: newWriter(spec.Rows, k.orDefault(), body), limit: max(budget.Bytes()/4, minRun),
		held: make([][]byte, len(sources)),
	}
	for i := range sources {
		s, err := openSource(&sources[i])
		if err != nil {
			return nil, "", err
		}
		if s.folding != unicode.Version {
			return nil, "the texts of an artifact were folded by another version of Unicode", nil
		}
		defer s.postings.Close()
		j.sources = append(j.sources, s)
	}
	if reason, err := j.trigrams(); reason != "" || err != nil {
		return nil, reason, err
	}
	nulls := make([]index.Unordered, len(sources))
	for i, s := range j.sources {
		nulls[i] = s.nulls
	}
	moved, reason, err := index.MergeUnordered(name, sources, m, nulls)
	if reason != "" || err != nil {
		return nil, reason, err
	}
	root, err := j.out.finish(func(rest *bytescan.Writer) error {
		_, err := moved.Write(rest, body, spec.Rows)
		return err
	})
	return root, "", err
}
