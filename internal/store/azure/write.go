package azure

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/upload"
)

// isNew is the condition that there is no blob.
func isNew() *blob.AccessConditions {
	whatever := azcore.ETagAny
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &whatever}}
}

// PutNew implements store.Store. Blobs of more than PartBytes are uploaded in blocks, one after another, and appear at the end.
func (s *Store) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return "", fault.About(key, err)
	}
	return s.put(ctx, key, isNew(), upload.NewWhole(upload.Source{ReadSeeker: r}, size), size)
}

// PutIf implements store.Store.
func (s *Store) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	when := isNew()
	if old != "" {
		when = match(old)
	}
	return s.put(ctx, key, when, bytes.NewReader(b), int64(len(b)))
}

func (s *Store) put(ctx context.Context, key string, when *blob.AccessConditions, body io.ReadSeeker, size int64) (_ store.Tag, err error) {
	p, err := s.object(key)
	if err != nil {
		return "", err
	}
	client, err := s.client(p)
	if err != nil {
		return "", fault.About(key, err)
	}
	pass, err := s.enter(ctx, key)
	if err != nil {
		return "", err
	}
	defer func() { pass.Leave(err) }()
	send := whole
	if size > s.options.PartBytes {
		send = s.blocks
	}
	etag, err := send(ctx, client.NewBlockBlobClient(p.name), when, body, size)
	if err = classify(ctx, key, p, writing, err); err != nil {
		return "", err
	}
	s.reader.Saw(key, tagOf(etag), size)
	return tagOf(etag), nil
}

func whole(ctx context.Context, c *blockblob.Client, when *blob.AccessConditions, body io.ReadSeeker, size int64) (*azcore.ETag, error) {
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	store.Count(ctx, store.Usage{Puts: 1, BytesWritten: size})
	out, err := c.Upload(ctx, streaming.NopCloser(body), &blockblob.UploadOptions{AccessConditions: when})
	return out.ETag, err
}

// blocks uploads in blocks; the condition is judged when they are put together. The blocks of a blob share one space of ids until
// then, so that they are given ids that nobody else gives. Blocks of an upload that failed are removed by the service after a week.
func (s *Store) blocks(ctx context.Context, c *blockblob.Client, when *blob.AccessConditions, body io.ReadSeeker, size int64) (*azcore.ETag, error) {
	part := max(s.options.PartBytes, (size+maxParts-1)/maxParts)
	mine := uuid.NewString()
	var ids []string
	for off := int64(0); off < size; off += part {
		n := min(part, size-off)
		id := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s-%06d", mine, len(ids)))
		store.Count(ctx, store.Usage{Puts: 1, BytesWritten: n})
		if _, err := c.StageBlock(ctx, id, upload.NewWindow(body, off, n), nil); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	store.Count(ctx, store.Usage{Puts: 1})
	out, err := c.CommitBlockList(ctx, ids, &blockblob.CommitBlockListOptions{AccessConditions: when})
	return out.ETag, err
}
