package sketch

import "github.com/skomerdb/skomer/internal/index"

// Merge unites the sketches where every row of every source is kept: of a part of the rows they know nothing.
func (k Kind) Merge(spec index.Spec, sources []index.Source, m *index.OrdinalMap, _ index.Budget, body index.Sink) ([]byte, string, error) {
	e, err := index.Mergeable(name, &spec, sources, m, index.OneColumnOrElement)
	if err != nil {
		return nil, "", err
	}
	lgK, err := lgKOf(spec.Params)
	if err != nil {
		return nil, "", err
	}
	total := int64(0)
	for i := range sources {
		total += int64(sources[i].Rows)
	}
	if total != int64(spec.Rows) {
		return nil, "rows were dropped, and sketches cannot forget them", nil
	}
	u := &Union{}
	for i := range sources {
		s, err := readSource(&sources[i])
		if err != nil {
			return nil, "", err
		}
		if s.enc != e || s.lgK < lgK {
			return nil, "a source has values of another type, or fewer hashes", nil
		}
		if err := u.Add(s); err != nil {
			return nil, "", err
		}
	}
	s, err := u.Sketch()
	if err != nil || s == nil {
		return nil, "no sources", err
	}
	root, err := s.Write(body)
	return root, "", err
}

func readSource(src *index.Source) (*Sketch, error) {
	x, err := OpenRoot(src.Root)
	if err != nil {
		return nil, err
	}
	if x.Rows != int64(src.Rows) {
		return nil, index.Broken(name+" root", "counts %d rows, the artifact %d", x.Rows, src.Rows)
	}
	l := x.Load()
	data := make([][]byte, len(x.units))
	for i, u := range x.units {
		if data[i], err = src.Unit(name, u, nil); err != nil {
			return nil, err
		}
	}
	if err := l.Feed(data); err != nil {
		return nil, err
	}
	return l.Sketch(), nil
}
