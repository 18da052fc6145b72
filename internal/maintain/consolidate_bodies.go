package maintain

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// bodyWindow is the bytes of bodies that are read at a time.
const bodyWindow = 8 << 20

// spool brings a body to a temporary file, verified.
func (m *consolidating) spool(ctx context.Context, x *member) (*os.File, error) {
	file, err := os.Create(filepath.Join(m.temp, spoolName(x)))
	if err != nil {
		return nil, fault.Wrap(fault.Exhausted, "temporary folder", err)
	}
	if err := m.stream(ctx, x, file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// stream writes a body to w and verifies it.
func (m *consolidating) stream(ctx context.Context, x *member, w io.Writer) error {
	read, err := streamBody(ctx, m.Store, &x.ArtifactInfo, x.sum, w)
	m.report.BytesRead += read
	if err != nil && !fault.Is(err, fault.Exhausted) {
		return &damaged{x.Bundle, err}
	}
	return err
}

// streamBody writes the body of an artifact to w and verifies it. An Exhausted fault is of w.
func streamBody(ctx context.Context, st store.Store, a *overlay.ArtifactInfo, want [32]byte, w io.Writer) (read int64, err error) {
	sum, crc := sha256.New(), uint32(0)
	for off := a.Body.Off; off < a.Body.End(); off += bodyWindow {
		res := st.Fetch(ctx, []store.Read{{Key: a.Bundle, Spans: []store.Span{{Off: off, Len: min(bodyWindow, a.Body.End()-off)}}}})[0]
		if res.Err != nil {
			return read, res.Err
		}
		b := res.Data[0]
		sum.Write(b)
		crc = bytescan.ExtendCRC(crc, b)
		read += int64(len(b))
		if _, err := w.Write(b); err != nil {
			return read, fault.Wrap(fault.Exhausted, "temporary file", err)
		}
	}
	if [32]byte(sum.Sum(nil)) != want || crc != a.Body.CRC {
		return read, fault.New(fault.Corrupt, a.Bundle, "the body at %d does not have its checksum", a.Body.Off)
	}
	return read, nil
}

// copy takes artifacts over as they are. Small bodies are read together, in one wave a window.
func (m *consolidating) copy(ctx context.Context, members []*member) error {
	for len(members) > 0 {
		n, size := 0, int64(0)
		for n < len(members) && (n == 0 || size+members[n].Body.Len <= bodyWindow) {
			size += members[n].Body.Len
			n++
		}
		if size > bodyWindow {
			if err := m.copyOne(members[0], func(w io.Writer) error { return m.stream(ctx, members[0], w) }); err != nil {
				return err
			}
		} else if err := m.copyWave(ctx, members[:n]); err != nil {
			return err
		}
		members = members[n:]
	}
	return nil
}

func (m *consolidating) copyWave(ctx context.Context, members []*member) error {
	var reads []store.Read
	at := make([][2]int, len(members)) // of each member's body: read and span
	for i, x := range members {
		if n := len(reads); n == 0 || reads[n-1].Key != x.Bundle {
			reads = append(reads, store.Read{Key: x.Bundle})
		}
		r := &reads[len(reads)-1]
		at[i] = [2]int{len(reads) - 1, len(r.Spans)}
		r.Spans = append(r.Spans, store.Span{Off: x.Body.Off, Len: x.Body.Len})
	}
	results := m.Store.Fetch(ctx, reads)
	for i, x := range members {
		res := results[at[i][0]]
		if res.Err != nil {
			return &damaged{x.Bundle, res.Err}
		}
		b := res.Data[at[i][1]]
		if sha256.Sum256(b) != x.sum || bytescan.CRC32C(b) != x.Body.CRC {
			return &damaged{x.Bundle, fault.New(fault.Corrupt, x.Bundle, "the body at %d does not have its checksum", x.Body.Off)}
		}
		m.report.BytesRead += int64(len(b))
		err := m.copyOne(x, func(w io.Writer) error { _, err := w.Write(b); return err })
		if err != nil {
			return err
		}
	}
	return nil
}

// copyOne puts an artifact with the body that write writes into the bundle, under its own lineage.
func (m *consolidating) copyOne(x *member, write func(io.Writer) error) error {
	rec := *x.rec
	rec.FilePath = m.bundle
	for i := range rec.Files {
		rec.Files[i].Tag = string(x.files[i].Tag)
	}
	sink, err := m.out.Begin(rec)
	if err != nil {
		return err
	}
	if err := write(sink); err != nil {
		return err
	}
	if err := m.out.End(x.root); err != nil {
		return err
	}
	m.pending = append(m.pending, overlay.Artifact{
		IndexID: x.IndexID, FormatVersion: lineage.FormatVersion, Columns: x.Columns, Files: x.files, Replaces: []overlay.Key{x.Key()},
	})
	m.counts.Copied++
	return nil
}
