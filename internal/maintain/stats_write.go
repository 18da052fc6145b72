package maintain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strconv"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/sketch"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/puffin"
	"github.com/skomerdb/skomer/internal/store"
)

// sink is a body in memory.
type sink struct{ bytes.Buffer }

func (s *sink) Offset() int64 { return int64(s.Len()) }

// write adds the blobs of one index's sketch to the file.
func (m *merging) write(d overlay.Definition, column string, s *sketch.Sketch, pieces []piece) error {
	body := &sink{}
	root, err := s.Write(body)
	if err != nil {
		return err
	}
	theta, ndv, err := s.Theta()
	if err != nil {
		return err
	}
	summary, err := s.Summary()
	if err != nil {
		return err
	}
	if m.file == nil {
		m.file = puffin.NewWriter(&m.out)
	}
	meta := Statistics{Summary: summary, Field: d.FieldIDs[0], Name: column, SnapshotID: m.Snapshot.ID}
	for _, n := range m.Snapshot.Files.Records {
		meta.Physical += n
	}
	var sources []byte
	for _, p := range pieces {
		meta.Files += p.info.Files
		sources = binary.LittleEndian.AppendUint64(sources, p.name)
	}
	var start, end int64
	for i, part := range []struct {
		kind  string
		data  []byte
		props map[string]string
	}{
		{thetaBlob, theta, map[string]string{"ndv": strconv.FormatInt(ndv, 10)}},
		{sketchBlob, body.Bytes()[len(theta):], nil},
		{rootBlob, root, nil},
		{sourcesBlob, sources, nil},
	} {
		blob, err := m.file.Append(puffin.Blob{
			Type: part.kind, Fields: []int32{int32(meta.Field)}, SnapshotID: m.Snapshot.ID, SequenceNumber: m.Snapshot.Sequence, Properties: part.props,
		}, part.data)
		if err != nil {
			return err
		}
		if i == 0 {
			start = blob.Offset
		}
		meta.Parts[i], end = blob.Length, blob.Offset+blob.Length
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	m.put = append(m.put, overlay.Derived{
		Kind: SketchKind, Name: d.ID, Index: d.ID, Off: start, Len: end - start, CRC: bytescan.CRC32C(m.out.Bytes()[start:end]),
		SHA256: sha256.Sum256(m.out.Bytes()[start:end]), Meta: raw,
	})
	return nil
}

// publish uploads the file, if there is one, and commits its parts.
func (m *merging) publish(ctx context.Context) error {
	if m.file == nil {
		return nil
	}
	if _, err := m.file.Finish(map[string]string{"created-by": "skomer"}); err != nil {
		return err
	}
	return shielded(ctx, m.Overlay, m.Version, func(id string) error { return m.upload(ctx, id) })
}

// upload is publish as a declared build.
func (m *merging) upload(ctx context.Context, id string) error {
	name := "stats/" + id + ".puffin"
	for i := range m.put {
		m.put[i].Key, m.put[i].Build = name, id
	}
	if _, err := m.Store.PutNew(ctx, m.Overlay.Prefix()+"/"+name, bytes.NewReader(m.out.Bytes())); err != nil {
		return err
	}
	receipt, err := m.Overlay.Commit(ctx, m.Version, overlay.Derive(m.put, nil))
	if err != nil {
		return err
	}
	m.Version = receipt.Version
	m.Report.BytesWritten += int64(m.out.Len())
	return nil
}

// readDerived reads and checks the sketch of a table, and the names of what it was merged from.
func readDerived(ctx context.Context, st store.Store, prefix string, d overlay.Derived) (*sketch.Sketch, []uint64, error) {
	var meta Statistics
	if err := json.Unmarshal(d.Meta, &meta); err != nil {
		return nil, nil, fault.Wrap(fault.Corrupt, d.Name, err)
	}
	key := prefix + "/" + d.Key
	res := st.Fetch(ctx, []store.Read{{Key: key, Spans: []store.Span{{Off: d.Off, Len: d.Len}}}})[0]
	if res.Err != nil {
		return nil, nil, fault.About(key, res.Err)
	}
	if err := d.Check(res.Data[0]); err != nil {
		return nil, nil, err
	}
	r := bytescan.NewReader(key, res.Data[0])
	var parts [4][]byte
	for i, n := range meta.Parts {
		if n < 0 || n > d.Len {
			return nil, nil, fault.New(fault.Corrupt, key, "a part of %d bytes in %d", n, d.Len)
		}
		parts[i] = r.Bytes(int(n))
	}
	if err := r.Done(); err != nil {
		return nil, nil, err
	}
	s, err := openSketch(parts[2], res.Data[0][:meta.Parts[0]+meta.Parts[1]])
	if err != nil {
		return nil, nil, err
	}
	sources := make([]uint64, len(parts[3])/8)
	for i := range sources {
		sources[i] = binary.LittleEndian.Uint64(parts[3][8*i:])
	}
	return s, sources, nil
}

func openSketch(root, body []byte) (*sketch.Sketch, error) {
	r, err := sketch.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	l := r.Load()
	var data [][]byte
	for _, s := range l.Need() {
		if s.Off > int64(len(body))-s.Len {
			return nil, fault.New(fault.Corrupt, "sketch", "a part at %d lies outside its %d bytes", s.Off, len(body))
		}
		data = append(data, body[s.Off:s.Off+s.Len])
	}
	if err := l.Feed(data); err != nil {
		return nil, err
	}
	return l.Sketch(), nil
}
