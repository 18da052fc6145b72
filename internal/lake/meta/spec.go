package meta

import (
	"encoding/json"

	"github.com/skomerdb/skomer/internal/facts"
)

// firstPartitionID is the id of the first field of a v1 spec that states no ids.
const firstPartitionID = 1000

type wireSpec struct {
	ID     int             `json:"spec-id"`
	Fields []wireSpecField `json:"fields"`
}

type wireSpecField struct {
	ID        *int   `json:"field-id,omitempty"`
	SourceID  int    `json:"source-id"`
	SourceIDs []int  `json:"source-ids,omitempty"`
	Name      string `json:"name"`
	Transform string `json:"transform"`
}

func (p parser) specs(w *wireMetadata, m *Metadata) error {
	m.Specs = map[int]*facts.Spec{}
	for _, s := range w.PartitionSpecs {
		m.Specs[s.ID] = specOf(s.ID, s.Fields)
		m.DefaultSpec = max(m.DefaultSpec, s.ID)
	}
	if w.DefaultSpecID != nil {
		m.DefaultSpec = *w.DefaultSpecID
	}
	if len(w.PartitionSpecs) == 0 {
		if m.FormatVersion > 1 {
			return p.bad("it has no partition-specs")
		}
		m.Specs[m.DefaultSpec] = specOf(m.DefaultSpec, w.PartitionSpec)
	}
	return nil
}

func specOf(id int, fields []wireSpecField) *facts.Spec {
	s := &facts.Spec{ID: id}
	for i, f := range fields {
		pf := facts.PartitionField{ID: firstPartitionID + i, SourceID: f.SourceID, Name: f.Name, Transform: f.Transform}
		if f.ID != nil {
			pf.ID = *f.ID
		}
		if pf.SourceID == 0 && len(f.SourceIDs) > 0 {
			pf.SourceID = f.SourceIDs[0]
		}
		s.Fields = append(s.Fields, pf)
	}
	return s
}

// ParseSpecFields reads the fields of a spec as a manifest's header holds them; what names the file in faults.
func ParseSpecFields(what string, id int, b []byte) (*facts.Spec, error) {
	var fields []wireSpecField
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, jsonFault(what, b, err)
	}
	return specOf(id, fields), nil
}

// SpecFieldsJSON is the inverse of ParseSpecFields.
func SpecFieldsJSON(s *facts.Spec) []byte {
	fields := make([]wireSpecField, len(s.Fields))
	for i, f := range s.Fields {
		id := f.ID
		fields[i] = wireSpecField{ID: &id, SourceID: f.SourceID, Name: f.Name, Transform: f.Transform}
	}
	return mustJSON(fields)
}

type wireMapped struct {
	ID     *int         `json:"field-id,omitempty"`
	Names  []string     `json:"names"`
	Fields []wireMapped `json:"fields,omitempty"`
}

// NameMappingProperty holds the name mapping of files without field ids.
const NameMappingProperty = "schema.name-mapping.default"

func (p parser) nameMapping(_ *wireMetadata, m *Metadata) error {
	text := m.Properties[NameMappingProperty]
	if text == "" {
		return nil
	}
	var list []wireMapped
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return p.bad("property %s: %v", NameMappingProperty, err)
	}
	var err error
	m.NameMapping, err = p.mapped(list, 0)
	return err
}

func (p parser) mapped(list []wireMapped, depth int) ([]facts.MappedField, error) {
	if depth > maxDepth {
		return nil, p.bad("property %s: nested deeper than %d", NameMappingProperty, maxDepth)
	}
	out := make([]facts.MappedField, 0, len(list))
	for _, w := range list {
		f := facts.MappedField{Names: w.Names}
		if w.ID != nil {
			f.ID = *w.ID
		}
		if len(w.Fields) > 0 {
			var err error
			if f.Fields, err = p.mapped(w.Fields, depth+1); err != nil {
				return nil, err
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// NameMappingJSON is the value of NameMappingProperty for a mapping.
func NameMappingJSON(mapping []facts.MappedField) string {
	return string(mustJSON(wireMapping(mapping)))
}

func wireMapping(mapping []facts.MappedField) []wireMapped {
	out := make([]wireMapped, 0, len(mapping))
	for _, f := range mapping {
		w := wireMapped{Names: f.Names}
		if w.Names == nil {
			w.Names = []string{}
		}
		if f.ID != 0 {
			id := f.ID
			w.ID = &id
		}
		if len(f.Fields) > 0 {
			w.Fields = wireMapping(f.Fields)
		}
		out = append(out, w)
	}
	return out
}

// mustJSON marshals values that always can be.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
