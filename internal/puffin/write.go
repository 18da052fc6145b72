package puffin

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"

	"github.com/skomerdb/skomer/internal/fault"
)

// Writer writes a Puffin file front to back: for each blob Begin, Write as often as needed and End, or all at once with
// Append; then Finish. Blobs and footer are uncompressed. Equal calls give equal bytes. After an error of the underlying
// writer every call returns that error.
type Writer struct {
	w     io.Writer
	off   int64
	blobs []Blob
	open  bool // between Begin and End
	done  bool
	err   error
}

// NewWriter writes to w; an error to write the magic is reported by the next call.
func NewWriter(w io.Writer) *Writer {
	p := &Writer{w: w}
	_, _ = p.put([]byte(magic)) // sticky: Finish returns it
	return p
}

// Offset is where the next byte goes.
func (p *Writer) Offset() int64 { return p.off }

// Begin starts a blob. Offset and Length are the writer's to set; a Codec is refused.
func (p *Writer) Begin(b Blob) error {
	switch {
	case p.err != nil:
		return p.err
	case p.open || p.done:
		return p.misuse("a blob begins inside a blob or behind the footer")
	case b.Type == "":
		return p.misuse("a blob needs a type")
	case b.Codec != "":
		return p.misuse("blobs are written uncompressed")
	}
	if b.Fields == nil {
		b.Fields = []int32{}
	}
	b.Offset, b.Length = p.off, 0
	p.blobs = append(p.blobs, b)
	p.open = true
	return nil
}

// Write appends to the blob that has begun.
func (p *Writer) Write(data []byte) (int, error) {
	if p.err == nil && !p.open {
		return 0, p.misuse("bytes outside of a blob")
	}
	return p.put(data)
}

// End ends the blob and returns it with its place in the file.
func (p *Writer) End() (Blob, error) {
	if p.err != nil {
		return Blob{}, p.err
	}
	if !p.open {
		return Blob{}, p.misuse("no blob has begun")
	}
	p.open = false
	b := &p.blobs[len(p.blobs)-1]
	b.Length = p.off - b.Offset
	return *b, nil
}

// Append writes a whole blob.
func (p *Writer) Append(b Blob, data []byte) (Blob, error) {
	if err := p.Begin(b); err != nil {
		return Blob{}, err
	}
	if _, err := p.Write(data); err != nil {
		return Blob{}, err
	}
	return p.End()
}

// Finish writes the footer and returns the size of the file.
func (p *Writer) Finish(properties map[string]string) (size int64, err error) {
	if p.err != nil {
		return 0, p.err
	}
	if p.open || p.done {
		return 0, p.misuse("a footer belongs once, behind the last blob")
	}
	payload, err := marshalFooter(p.blobs, properties)
	if err != nil {
		return 0, err
	}
	foot := append([]byte(magic), payload...)
	foot = binary.LittleEndian.AppendUint32(foot, uint32(len(payload)))
	foot = append(foot, 0, 0, 0, 0)
	foot = append(foot, magic...)
	if _, err := p.put(foot); err != nil {
		return 0, err
	}
	p.done = true
	return p.off, nil
}

func (p *Writer) put(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.w.Write(b)
	p.off += int64(n)
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	p.err = fault.About("Puffin file", err)
	return n, p.err
}

func (p *Writer) misuse(reason string) error { return fault.New(fault.Invalid, "Puffin file", reason) }

type blobJSON struct {
	Type           string            `json:"type"`
	Fields         []int32           `json:"fields"`
	SnapshotID     int64             `json:"snapshot-id"`
	SequenceNumber int64             `json:"sequence-number"`
	Offset         int64             `json:"offset"`
	Length         int64             `json:"length"`
	Properties     map[string]string `json:"properties,omitempty"`
}

// marshalFooter renders the payload: keys in the order of the specification, property names sorted.
func marshalFooter(blobs []Blob, properties map[string]string) ([]byte, error) {
	foot := struct {
		Blobs      []blobJSON        `json:"blobs"`
		Properties map[string]string `json:"properties,omitempty"`
	}{Blobs: make([]blobJSON, len(blobs)), Properties: properties}
	for i, b := range blobs {
		foot.Blobs[i] = blobJSON{b.Type, b.Fields, b.SnapshotID, b.SequenceNumber, b.Offset, b.Length, b.Properties}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(foot); err != nil {
		return nil, fault.About("Puffin file", err)
	}
	payload := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if len(payload) > min(MaxFooter, math.MaxInt32) {
		return nil, fault.New(fault.Exhausted, "Puffin file", "footer of %d bytes, the limit is %d", len(payload), MaxFooter)
	}
	return payload, nil
}
