package parquetio

import (
	"github.com/skomerdb/skomer/internal/fault"
)

// maxSchemaDepth bounds the nesting of groups, and with it definition levels.
const maxSchemaDepth = 64

// node is a group or leaf of the file's schema with the levels at it.
type node struct {
	*element
	kids   []*node
	parent *node
	leaf   int // index among the leaves; -1 for a group
	def    uint8
	rep    uint8
}

// path is the names from the root's child down, joined by dots.
func (n *node) path() string {
	if n.parent == nil || n.parent.parent == nil {
		return n.name
	}
	return n.parent.path() + "." + n.name
}

func (n *node) group() bool { return n.leaf < 0 }

func (f *File) buildSchema() error {
	e := f.meta.elements
	if len(e) == 0 {
		return fault.New(fault.Corrupt, "schema", "is empty")
	}
	e[0].rep = required
	at := 0
	root, err := f.buildNode(nil, &at, 0)
	if err != nil {
		return err
	}
	if at != len(e) {
		return fault.New(fault.Corrupt, "schema", "has %d nodes, %d of them hang together", len(e), at)
	}
	f.root = root
	return nil
}

func (f *File) buildNode(parent *node, at *int, depth int) (*node, error) {
	if *at >= len(f.meta.elements) || depth > maxSchemaDepth {
		return nil, fault.New(fault.Corrupt, "schema", "runs past its %d nodes or is nested more than %d deep", len(f.meta.elements), maxSchemaDepth)
	}
	n := &node{element: &f.meta.elements[*at], parent: parent, leaf: -1}
	*at++
	if parent != nil {
		n.def, n.rep = parent.def, parent.rep
	}
	switch n.element.rep {
	case required:
	case optional:
		n.def++
	case repeated:
		n.def++
		n.rep++
	default:
		return nil, fault.New(fault.Corrupt, "schema", "column %s: unknown repetition", n.path())
	}
	f.hasIDs = f.hasIDs || n.hasID && parent != nil
	if n.element.phys != noType && n.element.kids == 0 {
		return n, f.addLeaf(n)
	}
	if n.element.kids < 0 || int(n.element.kids) > len(f.meta.elements)-*at {
		return nil, fault.New(fault.Corrupt, "schema", "group %s claims %d children", n.path(), n.element.kids)
	}
	ids := map[int32]bool{}
	for range n.element.kids {
		kid, err := f.buildNode(n, at, depth+1)
		if err != nil {
			return nil, err
		}
		if kid.hasID {
			f.sharedID = f.sharedID || ids[kid.id]
			ids[kid.id] = true
		}
		n.kids = append(n.kids, kid)
	}
	return n, nil
}

func (f *File) addLeaf(n *node) error {
	n.leaf = len(f.leaves)
	f.leaves = append(f.leaves, n)
	if n.phys == fixedLen && (n.length <= 0 || n.length > maxFixed) {
		return fault.New(fault.Corrupt, "schema", "column %s: fixed length of %d bytes", n.path(), n.length)
	}
	return nil
}

// maxFixed bounds FIXED_LEN_BYTE_ARRAY values.
const maxFixed = 1 << 20

// valueWidth is the bytes of one PLAIN value of a leaf; 0 for BOOLEAN and BYTE_ARRAY.
func (n *node) valueWidth() int {
	if n.phys == fixedLen {
		return int(n.length)
	}
	return n.phys.width()
}

// firstLeaf is the first leaf at or under n; nil for a group without any.
func (n *node) firstLeaf() *node {
	if !n.group() {
		return n
	}
	for _, k := range n.kids {
		if l := k.firstLeaf(); l != nil {
			return l
		}
	}
	return nil
}
