package bundle

import (
	"os"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/puffin"
)

// RunWriter writes a run of a file map into Puffin files in a local folder: leaves into one after another, and the root, and the layouts of
// its files, behind the leaves of the last.
type RunWriter struct {
	dir    string
	info   BuildInfo
	fields []int32
	props  map[string]string
	files  []*os.File
	puffin *puffin.Writer
	out    RunFiles
}

// RunFiles is a finished run.
type RunFiles struct {
	Paths []string      // of the local files
	Sizes []int64       // of them
	First []int64       // offset of the first leaf in each
	Root  lineage.Place // in the last
	// Layouts is where those are, in the last; nil: there are none.
	Layouts *lineage.Place
}

// NewRunWriter writes a run on the column with the field id, of the index.
func NewRunWriter(dir string, info BuildInfo, index string, fieldID int) *RunWriter {
	return &RunWriter{dir: dir, info: info, fields: []int32{int32(fieldID)}, props: map[string]string{propIndex: index}}
}

// Write appends a leaf.
func (w *RunWriter) Write(leaf []byte) (int, error) {
	if w.puffin == nil {
		if err := w.begin(); err != nil {
			return 0, err
		}
	}
	return w.puffin.Write(leaf)
}

// Next makes the leaves that follow go into another file.
func (w *RunWriter) Next() error {
	if w.puffin == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	return w.end(nil, nil)
}

func (w *RunWriter) begin() error {
	f, err := os.CreateTemp(w.dir, "filemap-*.puffin")
	if err != nil {
		return fault.Wrap(fault.Exhausted, "temporary folder of the build", err)
	}
	w.files = append(w.files, f)
	w.puffin = puffin.NewWriter(f)
	return w.puffin.Begin(w.blob(filemap.LeavesType))
}

func (w *RunWriter) blob(kind string) puffin.Blob {
	return puffin.Blob{Type: kind, Fields: w.fields, SnapshotID: w.info.SnapshotID, SequenceNumber: w.info.Sequence, Properties: w.props}
}

// end closes the file at hand, behind the root and the layouts if there are any.
func (w *RunWriter) end(root, layouts []byte) error {
	leaves, err := w.puffin.End()
	if err != nil {
		return err
	}
	if root != nil {
		if w.out.Root, err = w.append(filemap.RootType, root); err != nil {
			return err
		}
	}
	if layouts != nil {
		at, err := w.append(filemap.LayoutsType, layouts)
		if err != nil {
			return err
		}
		w.out.Layouts = &at
	}
	size, err := w.puffin.Finish(map[string]string{propBuild: w.info.BuildID, propTable: w.info.TableUUID})
	if err != nil {
		return err
	}
	f := w.files[len(w.files)-1]
	w.puffin = nil
	w.out.Paths, w.out.Sizes, w.out.First = append(w.out.Paths, f.Name()), append(w.out.Sizes, size), append(w.out.First, leaves.Offset)
	return fault.Wrap(fault.Exhausted, f.Name(), f.Close())
}

func (w *RunWriter) append(kind string, raw []byte) (lineage.Place, error) {
	b, err := w.puffin.Append(w.blob(kind), raw)
	return lineage.Place{Off: b.Offset, Len: b.Length, CRC: bytescan.CRC32C(raw)}, err
}

// Close writes the root and, unless they are nil, the layouts. The files are the caller's to remove.
func (w *RunWriter) Close(root, layouts []byte) (RunFiles, error) {
	if w.puffin == nil {
		if err := w.begin(); err != nil {
			return RunFiles{}, err
		}
	}
	err := w.end(root, layouts)
	return w.out, err
}

// Abandon removes every file.
func (w *RunWriter) Abandon() {
	for _, f := range w.files {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}
