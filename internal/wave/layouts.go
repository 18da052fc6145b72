package wave

import (
	"bytes"

	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/store"
)

// Layouts is those of the files of a run. Of nil there are none.
type Layouts struct {
	task *Task // what to read first; nil: they are known
	of   *filemap.Layouts
}

// AppendTask adds what is to be read first, if anything.
func (l *Layouts) AppendTask(tasks []*Task) []*Task {
	if l == nil || l.task == nil {
		return tasks
	}
	return append(tasks, l.task)
}

// Err is why they could not be read.
func (l *Layouts) Err() error {
	if l == nil || l.task == nil {
		return nil
	}
	return l.task.Err
}

// Of is the layout of the file in a slot; false where there is none, or none could be read.
func (l *Layouts) Of(slot int) (filemap.Layout, bool) {
	if l == nil {
		return filemap.Layout{}, false
	}
	return l.of.Of(slot)
}

// Layouts is those of a listed run of the overlay at prefix; nil where it has none, or so many bytes of them that they would crowd out roots.
// What its task reads is kept.
func (k *Runs) Layouts(prefix string, r *ListedRun) *Layouts {
	if r.Meta.Layouts == nil || r.Meta.Layouts.Len > k.limit/4 {
		return nil
	}
	key := readerKey{prefix + "/" + r.Key, r.Meta.Layouts.Off}
	if e := k.find(key); e != nil && e.layouts != nil {
		return &Layouts{of: e.layouts}
	}
	out := &Layouts{}
	out.task = &Task{Key: key.bundle, Steps: &layoutsRead{k, r, key, out}}
	return out
}

// layoutsRead is the one read of layouts.
type layoutsRead struct {
	runs *Runs
	run  *ListedRun
	key  readerKey
	into *Layouts
}

// Need is the layouts, once.
func (l *layoutsRead) Need() []store.Span {
	if l.run == nil {
		return nil
	}
	return []store.Span{{Off: l.run.Meta.Layouts.Off, Len: l.run.Meta.Layouts.Len}}
}

// Feed opens and keeps them.
func (l *layoutsRead) Feed(data [][]byte) error {
	of, err := l.run.Meta.OpenLayouts(l.run.Name, bytes.Clone(data[0])) // which may be a piece of a longer read
	l.run = nil
	if err != nil {
		return err
	}
	l.into.of = of
	l.runs.keep(&keptRun{key: l.key, layouts: of, bytes: of.Bytes()})
	return nil
}
