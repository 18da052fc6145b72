package zonemap

import (
	"fmt"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// group is a row group's zone and those of its pages.
type group struct {
	zone
	pages []zone
}

// writer writes the artifact of finished row groups.
type writer struct {
	sizes  sizes
	enc    index.Encoding
	groups []group
}

// seal writes the body and returns the root.
func (x *writer) seal(body index.Sink) ([]byte, string, error) {
	pages := &bytescan.Writer{}
	pages.U8(0)
	_ = x.eachPaged(func(g *group) error {
		for i := range g.pages {
			g.pages[i].append(pages, x.enc)
		}
		return nil
	})
	root := x.root(0)
	if len(root)+len(pages.Buf) <= x.sizes.inline {
		return append(root, pages.Buf...), "", nil
	}
	pages = &bytescan.Writer{}
	pages.U8(1)
	if err := x.eachPaged(func(g *group) error { return x.writeBlocks(body, pages, g.pages) }); err != nil {
		return nil, "", err
	}
	root = append(x.root(body.Offset()), pages.Buf...)
	if len(root) > maxRoot {
		return nil, fmt.Sprintf("the root takes %d bytes, above the limit of %d: too many row groups", len(root), maxRoot), nil
	}
	return root, "", nil
}

func (x *writer) eachPaged(visit func(*group) error) error {
	for i := range x.groups {
		if len(x.groups[i].pages) < 2 {
			continue
		}
		if err := visit(&x.groups[i]); err != nil {
			return err
		}
	}
	return nil
}

func (x *writer) root(bodySize int64) []byte {
	w := index.StartRoot(version, x.enc)
	w.Uvarint(uint64(bodySize))
	w.Uvarint(uint64(len(x.groups)))
	for i := range x.groups {
		x.groups[i].append(w, x.enc)
		w.Uvarint(uint64(len(x.groups[i].pages)))
	}
	return w.Buf
}

// writeBlocks writes the pages of one row group to the body and their units to dir.
func (x *writer) writeBlocks(body index.Sink, dir *bytescan.Writer, pages []zone) error {
	list, blocks := &bytescan.Writer{}, 0
	block := &bytescan.Writer{}
	first := 0
	for i := range pages {
		pages[i].append(block, x.enc)
		if len(block.Buf) < x.sizes.block && i+1 < len(pages) {
			continue
		}
		u, err := index.WriteUnit(body, block.Buf)
		if err != nil {
			return err
		}
		list.Uvarint(uint64(i + 1 - first))
		u.Append(list)
		block.Buf, first, blocks = block.Buf[:0], i+1, blocks+1
	}
	dir.Uvarint(uint64(blocks))
	dir.Bytes(list.Buf)
	return nil
}
