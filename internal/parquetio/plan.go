package parquetio

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
)

// shape tells how a plan makes its vector.
type shape uint8

const (
	shapeLeaf shape = iota
	shapeStruct
	shapeList    // and maps: two children
	shapeVariant // metadata and value as one byte string
	shapeDefault // absent from the file
)

// plan is how one table field comes out of leaves. Levels are those of the file: the field is non-null where the definition
// level reaches def.
type plan struct {
	shape  shape
	field  column.Field
	def    uint8
	elem   uint8 // shapeList: an element is there where the definition level reaches it
	kids   []*plan
	reader int // shapeLeaf: index into the bound column's readers; else one whose levels tell, -1 for none
}

// binder builds one bound column.
type binder struct{ col *bound }

func (f *File) bindPath(path column.Path, names []facts.MappedField) (*bound, error) {
	if path.Repeated() {
		return nil, fault.New(fault.Invalid, "column "+path.Name(), "lies inside a list or map: ask for that")
	}
	res := f.resolver(names)
	col := &bound{path: path, how: res.how}
	b := &binder{col: col}
	at := f.root
	for i, field := range path {
		kid, inner := res.find(at, field)
		if kid == nil {
			col.how = Absent
			col.plan = b.absent(path[i:], at)
			return col, nil
		}
		at, res = kid, inner
		if i < len(path)-1 && (!at.group() || at.element.rep == repeated) {
			return nil, mismatch(at, field.Type)
		}
	}
	p, err := b.build(path.Leaf(), at, res)
	if err != nil {
		return nil, err
	}
	col.plan = p
	col.flat = p.shape == shapeLeaf
	return col, nil
}

// absent plans a path whose rest is not in the file below group at. Its last field has its default wherever all structs above it
// are there.
func (b *binder) absent(rest column.Path, at *node) *plan {
	p := &plan{shape: shapeDefault, field: rest.Leaf(), def: at.def, reader: -1}
	for _, f := range rest[:len(rest)-1] {
		if f.Initial == nil { // a struct of the rest is null itself
			p.field.Initial = nil
		}
	}
	if p.field.Initial != nil && at.def > 0 {
		p.reader = b.levelsOf(at)
	}
	return p
}

// read adds a leaf to the column's readers.
func (b *binder) read(n *node, c *conversion) int {
	b.col.readers = append(b.col.readers, readerPlan{leaf: n, conv: c})
	return len(b.col.readers) - 1
}

// levelsOf reads some leaf under a group for its levels alone; -1 if there is none.
func (b *binder) levelsOf(group *node) int {
	leaf := group.firstLeaf()
	if leaf == nil {
		return -1
	}
	return b.read(leaf, &conversion{null: true})
}

func (b *binder) build(field column.Field, n *node, res resolver) (*plan, error) {
	switch field.Type.Kind {
	case column.Struct:
		if !n.group() || n.element.rep == repeated {
			return nil, mismatch(n, field.Type)
		}
		return b.structure(field, n, res)
	case column.List:
		return b.list(field, n, res)
	case column.Map:
		return b.mapping(field, n, res)
	case column.Variant:
		return b.variant(field, n)
	case column.Unknown:
		return &plan{shape: shapeDefault, field: column.Field{ID: field.ID, Name: field.Name, Type: field.Type}, reader: -1}, nil
	}
	if n.group() || n.element.rep == repeated {
		return nil, mismatch(n, field.Type)
	}
	return b.leaf(field, n)
}

func (b *binder) leaf(field column.Field, n *node) (*plan, error) {
	c, err := convert(n, field.Type)
	if err != nil {
		return nil, err
	}
	return &plan{shape: shapeLeaf, field: field, def: n.def, reader: b.read(n, c)}, nil
}

// structure plans a struct over group n, which may also be a repeated group that is a list's element.
func (b *binder) structure(field column.Field, n *node, res resolver) (*plan, error) {
	p := &plan{shape: shapeStruct, field: field, def: n.def, reader: -1}
	for _, f := range field.Type.Fields {
		kid, inner := res.find(n, f)
		if kid == nil {
			p.kids = append(p.kids, &plan{shape: shapeDefault, field: f, reader: -1})
			continue
		}
		k, err := b.build(f, kid, inner)
		if err != nil {
			return nil, err
		}
		p.kids = append(p.kids, k)
		if p.reader < 0 {
			p.reader = k.reader
		}
	}
	if p.reader < 0 {
		p.reader = b.levelsOf(n)
	}
	if p.reader < 0 {
		return nil, fault.New(fault.Unsupported, "column "+n.path(), "is a struct without any column in the file")
	}
	return p, nil
}

// list plans a list over any of the shapes that writers have used ("LogicalTypes.md", Lists, backward compatibility).
func (b *binder) list(field column.Field, n *node, res resolver) (*plan, error) {
	rep, nullAt := n, n.def
	if n.element.rep == repeated { // no annotation: the repeated field is the list and its element
		nullAt = n.def - 1
	} else if len(n.kids) == 1 && n.kids[0].element.rep == repeated {
		rep = n.kids[0]
	} else {
		return nil, mismatch(n, field.Type)
	}
	elem := field.Type.Fields[0]
	at := elementOf(n, rep, elem)
	p := &plan{shape: shapeList, field: field, def: nullAt, elem: rep.def}
	k, err := b.element(elem, at, rep, res.inside(elem))
	if err != nil {
		return nil, err
	}
	p.kids, p.reader = []*plan{k}, k.reader
	if p.reader < 0 {
		p.reader = b.levelsOf(rep)
	}
	return p, nil
}

// elementOf is the node of a list's element: the repeated node itself or its only child.
func elementOf(list, rep *node, elem column.Field) *node {
	if rep == list || !rep.group() || len(rep.kids) != 1 {
		return rep
	}
	only := rep.kids[0]
	structured := elem.Type.Kind == column.Struct
	switch {
	case structured && (!only.group() || only.element.rep == repeated):
		return rep
	case structured && !only.hasID && (rep.name == "array" || rep.name == list.name+"_tuple"):
		return rep
	default:
		return only
	}
}

// element plans what is inside a repeated node: at is that node itself or a child of it.
func (b *binder) element(field column.Field, at, rep *node, res resolver) (*plan, error) {
	if at != rep {
		return b.build(field, at, res)
	}
	switch {
	case field.Type.Kind == column.Struct && at.group():
		return b.structure(field, at, res)
	case !field.Type.Kind.Nested() && field.Type.Kind != column.Variant && !at.group():
		return b.leaf(field, at)
	default:
		return nil, mismatch(at, field.Type)
	}
}

func (b *binder) mapping(field column.Field, n *node, res resolver) (*plan, error) {
	if !n.group() || n.element.rep == repeated || len(n.kids) != 1 || n.kids[0].element.rep != repeated || len(n.kids[0].kids) == 0 {
		return nil, mismatch(n, field.Type)
	}
	rep := n.kids[0]
	p := &plan{shape: shapeList, field: field, def: n.def, elem: rep.def, reader: -1}
	for i, f := range field.Type.Fields {
		k := &plan{shape: shapeDefault, field: column.Field{ID: f.ID, Name: f.Name, Type: f.Type}, reader: -1}
		if i < len(rep.kids) {
			var err error
			if k, err = b.build(f, rep.kids[i], res.inside(f)); err != nil {
				return nil, err
			}
		}
		p.kids = append(p.kids, k)
		if p.reader < 0 {
			p.reader = k.reader
		}
	}
	if p.reader < 0 {
		p.reader = b.levelsOf(rep)
	}
	return p, nil
}

// variant plans an unshredded variant ("VariantEncoding.md"): its vector holds metadata and value, one behind the other.
func (b *binder) variant(field column.Field, n *node) (*plan, error) {
	p := &plan{shape: shapeVariant, field: field, def: n.def}
	opaque := column.Of(column.Variant)
	for _, name := range []string{"metadata", "value"} {
		var part *node
		for _, k := range n.kids {
			if k.name == name && !k.group() && k.phys == byteArray && k.element.rep != repeated {
				part = k
			}
			if k.name == "typed_value" {
				return nil, fault.New(fault.Unsupported, "column "+n.path(), "is a shredded variant")
			}
		}
		if part == nil {
			return nil, mismatch(n, field.Type)
		}
		k := &plan{shape: shapeLeaf, field: column.Field{Type: opaque}, def: part.def, reader: b.read(part, &conversion{target: opaque})}
		p.kids = append(p.kids, k)
	}
	p.reader = p.kids[0].reader
	return p, nil
}
