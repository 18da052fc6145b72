package bundle

import (
	"encoding/hex"
	"io"
	"math"
	"strings"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/puffin"
)

// BuildInfo is what all artifacts of a bundle share.
type BuildInfo struct {
	BuildID, TableUUID   string
	SnapshotID, Sequence int64 // of the table snapshot that was read
}

// Written is an artifact of a finished bundle.
type Written struct {
	Placed
	RootBytes []byte
	Record    lineage.Record // as it stands in the bundle
	Digest    string         // SHA-256 of the record, hex
}

// Writer writes a bundle front to back: for each artifact Begin, the body into the sink, then End with its root or
// Abandon; then Close. Bodies are streamed; roots and lineage records are held in memory until Close. After an error every
// call returns it, and the bytes written are of no use.
type Writer struct {
	puffin *puffin.Writer
	blocks blocks
	info   BuildInfo
	done   []Written
	open   *body
	err    error
}

// body is the artifact being written.
type body struct {
	w       *Writer
	rec     lineage.Record
	props   map[string]string // of its blob; the digest is added before the footer is written
	started bool              // its blob has begun
	n       int64
}

// NewWriter writes a bundle to w, in blocks of 128 KiB: one is hashed and written in the background while the next is filled, the last one when
// the bundle is closed. Whoever gives a bundle up before that may see one more write.
func NewWriter(w io.Writer, info BuildInfo) *Writer {
	out := &Writer{blocks: blocks{w: w}, info: info}
	out.puffin = puffin.NewWriter(&out.blocks)
	return out
}

// Begin starts an artifact. The record's blob fields and checksum are the writer's to fill in; FilePath, the key that the
// bundle will have, is the caller's. A record without BlobType gets that of its algorithm.
func (w *Writer) Begin(rec lineage.Record) (index.Sink, error) {
	if w.err != nil {
		return nil, w.err
	}
	if rec.BlobType == "" {
		rec.BlobType = typePrefix + rec.Algorithm
	}
	switch {
	case w.open != nil:
		return nil, w.fail(fault.New(fault.Invalid, rec.IndexID, "the artifact before has not ended"))
	case rec.IndexID == "" || len(rec.IndexID) > maxText || len(rec.BlobType) > maxText || !strings.HasPrefix(rec.BlobType, typePrefix):
		return nil, w.fail(fault.New(fault.Invalid, rec.IndexID, "no index id or blob type %q", rec.BlobType))
	case len(w.done) == maxArtifacts:
		return nil, w.fail(fault.New(fault.Exhausted, w.info.BuildID, "more than %d artifacts in one bundle", maxArtifacts))
	}
	w.open = &body{w: w, rec: rec, props: map[string]string{propIndex: rec.IndexID}}
	return w.open, nil
}

// start begins the body's blob.
func (b *body) start() error {
	if b.started {
		return nil
	}
	b.started = true
	b.w.blocks.begin()
	fields := make([]int32, len(b.rec.Columns))
	for i, c := range b.rec.Columns {
		fields[i] = int32(c.FieldID)
	}
	return b.w.fail(b.w.puffin.Begin(puffin.Blob{
		Type: b.rec.BlobType, Fields: fields, SnapshotID: b.w.info.SnapshotID, SequenceNumber: b.w.info.Sequence, Properties: b.props,
	}))
}

// Write appends to the body.
func (b *body) Write(p []byte) (int, error) {
	if b.w.err != nil {
		return 0, b.w.err
	}
	if b.w.open != b {
		return 0, fault.New(fault.Invalid, b.rec.IndexID, "the artifact has ended")
	}
	if err := b.start(); err != nil {
		return 0, err
	}
	n, err := b.w.puffin.Write(p)
	b.n += int64(n)
	return n, b.w.fail(err)
}

// Offset is the number of body bytes written.
func (b *body) Offset() int64 { return b.n }

// fail keeps the first error.
func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return err
}

// End ends the artifact.
func (w *Writer) End(root []byte) error {
	b, blob, sums, err := w.endBlob()
	if err != nil {
		return err
	}
	if int64(len(root)) > math.MaxUint32 {
		return w.fail(fault.New(fault.Exhausted, b.rec.IndexID, "root of %d bytes", len(root)))
	}
	out := Written{Placed: Placed{IndexID: b.rec.IndexID, BlobType: b.rec.BlobType}, RootBytes: root, Record: b.rec}
	out.Body = lineage.Place{Off: blob.Offset, Len: blob.Length, CRC: sums.crc}
	sums.sha.Sum(out.BodySHA256[:0])
	out.Record.BlobOffset, out.Record.BlobLength = blob.Offset, blob.Length
	out.Record.IndexChecksum = hex.EncodeToString(out.BodySHA256[:])
	encoded, err := lineage.Encode(&out.Record)
	if err != nil {
		return w.fail(err)
	}
	out.Digest = lineage.Digest(encoded)
	out.Lineage = lineage.Place{Len: int64(len(encoded)), CRC: bytescan.CRC32C(encoded)}
	b.props[propLineage] = out.Digest // the blob shares the map; the footer is rendered at Close
	w.done = append(w.done, out)
	return nil
}

// Abandon ends an artifact that is not worth keeping. What was written of its body stays in the file as a blob that no
// directory names.
func (w *Writer) Abandon() error {
	if w.err == nil && w.open != nil && !w.open.started {
		w.open = nil
		return nil
	}
	_, _, _, err := w.endBlob()
	return err
}

func (w *Writer) endBlob() (*body, puffin.Blob, *sums, error) {
	if w.err != nil {
		return nil, puffin.Blob{}, nil, w.err
	}
	if w.open == nil {
		return nil, puffin.Blob{}, nil, w.fail(fault.New(fault.Invalid, w.info.BuildID, "no artifact has begun"))
	}
	b := w.open
	if err := b.start(); err != nil {
		return nil, puffin.Blob{}, nil, err
	}
	w.open = nil
	blob, err := w.puffin.End()
	return b, blob, w.blocks.end(), w.fail(err)
}

// Close writes lineage, roots and footer and returns the artifacts in the order in which they ended. Behind it nothing is written, not even
// where it fails.
func (w *Writer) Close() ([]Written, error) {
	if w.err == nil && w.open != nil {
		_ = w.fail(fault.New(fault.Invalid, w.open.rec.IndexID, "the artifact has not ended"))
	}
	for _, step := range []func() error{w.writeLineage, w.writeRoots, w.finish} {
		if w.err == nil {
			_ = w.fail(step())
		}
	}
	if w.err != nil {
		_ = w.blocks.wait()
		return nil, w.err
	}
	w.err = fault.New(fault.Invalid, w.info.BuildID, "the bundle is closed")
	return w.done, nil
}

func (w *Writer) blob(kind string) puffin.Blob {
	return puffin.Blob{Type: kind, SnapshotID: w.info.SnapshotID, SequenceNumber: w.info.Sequence}
}

func (w *Writer) writeLineage() error {
	if err := w.puffin.Begin(w.blob(LineageType)); err != nil {
		return err
	}
	if _, err := w.puffin.Write([]byte{lineageMagic[0], lineageMagic[1], lineageMagic[2], lineageMagic[3], formatOne, 0, 0, 0}); err != nil {
		return err
	}
	for i := range w.done {
		d := &w.done[i]
		encoded, err := lineage.Encode(&d.Record)
		if err != nil {
			return err
		}
		var head bytescan.Writer
		head.U32(uint32(len(encoded)))
		head.U32(d.Lineage.CRC)
		if _, err := w.puffin.Write(head.Buf); err != nil {
			return err
		}
		d.Lineage.Off = w.puffin.Offset()
		if _, err := w.puffin.Write(encoded); err != nil {
			return err
		}
	}
	_, err := w.puffin.End()
	return err
}

func (w *Writer) writeRoots() error {
	if err := w.puffin.Begin(w.blob(RootsType)); err != nil {
		return err
	}
	start := w.puffin.Offset()
	placed := make([]Placed, len(w.done))
	for i := range w.done {
		d := &w.done[i]
		d.Root = lineage.Place{Off: w.puffin.Offset(), Len: int64(len(d.RootBytes)), CRC: bytescan.CRC32C(d.RootBytes)}
		if _, err := w.puffin.Write(d.RootBytes); err != nil {
			return err
		}
		placed[i] = d.Placed
	}
	if _, err := w.puffin.Write(encodeDirectory(placed)); err != nil {
		return err
	}
	if n := w.puffin.Offset() - start; n > maxRoots {
		return fault.New(fault.Exhausted, w.info.BuildID, "roots of %d bytes, limit %d", n, maxRoots)
	}
	_, err := w.puffin.End()
	return err
}

func (w *Writer) finish() error {
	props := map[string]string{propCreator: creator, propBuild: w.info.BuildID}
	if w.info.TableUUID != "" {
		props[propTable] = w.info.TableUUID
	}
	if _, err := w.puffin.Finish(props); err != nil {
		return err
	}
	return fault.About("Puffin file", w.blocks.flush())
}
