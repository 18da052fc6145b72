package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/upload"
)

// afterwards is how long the parts of an upload that failed may take to be removed.
const afterwards = 10 * time.Second

// condition is under which a write happens.
type condition struct{ ifMatch, ifNoneMatch *string }

var isNew = condition{ifNoneMatch: aws.String("*")}

// sending is a write on its way.
type sending struct {
	client *s3.Client
	key    string
	place  place
	when   condition
	body   io.ReadSeeker
	size   int64
	part   int64
}

// PutNew implements store.Store. Objects of more than PartBytes are uploaded in parts, one after another, and appear at the end.
func (s *Store) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return "", fault.About(key, err)
	}
	return s.put(ctx, key, isNew, upload.Source{ReadSeeker: r}, size)
}

// PutIf implements store.Store.
func (s *Store) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	when := isNew
	if old != "" {
		when = condition{ifMatch: header(old)}
	}
	return s.put(ctx, key, when, bytes.NewReader(b), int64(len(b)))
}

func (s *Store) put(ctx context.Context, key string, when condition, body io.ReadSeeker, size int64) (_ store.Tag, err error) {
	p, err := object(key)
	if err != nil {
		return "", err
	}
	pass, err := s.enter(ctx, key)
	if err != nil {
		return "", err
	}
	defer func() { pass.Leave(err) }()
	client, err := s.connect()
	if err != nil {
		return "", fault.About(key, err)
	}
	u := &sending{client: client, key: key, place: p, when: when, body: body, size: size}
	u.part = max(s.options.PartBytes, (size+maxParts-1)/maxParts)
	send := u.whole
	if size > s.options.PartBytes {
		send = u.parts
	}
	tag, err := send(ctx)
	err = s.classify(ctx, key, p, writing, err)
	return tag, err
}

func (u *sending) whole(ctx context.Context) (store.Tag, error) {
	if _, err := u.body.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	store.Count(ctx, store.Usage{Puts: 1, BytesWritten: u.size})
	out, err := u.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &u.place.bucket, Key: &u.place.name, Body: u.body, ContentLength: &u.size,
		IfMatch: u.when.ifMatch, IfNoneMatch: u.when.ifNoneMatch,
	})
	if err != nil {
		return "", err
	}
	return tagOf(out.ETag), nil
}

// parts uploads in parts; the condition is judged when they are put together. What failed leaves no parts that cost money.
func (u *sending) parts(ctx context.Context) (tag store.Tag, err error) {
	store.Count(ctx, store.Usage{Puts: 1})
	made, err := u.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &u.place.bucket, Key: &u.place.name})
	if err != nil {
		return "", err
	}
	defer func() {
		if err == nil {
			return
		}
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
		defer cancel()
		store.Count(ctx, store.Usage{Deletes: 1})
		_, abortErr := u.client.AbortMultipartUpload(late, &s3.AbortMultipartUploadInput{Bucket: &u.place.bucket, Key: &u.place.name, UploadId: made.UploadId})
		var gone *types.NoSuchUpload
		if abortErr != nil && !errors.As(abortErr, &gone) {
			err = errors.Join(err, abortErr)
		}
	}()
	var done []types.CompletedPart
	for off := int64(0); off < u.size; off += u.part {
		p, err := u.sendPart(ctx, made.UploadId, int32(len(done)+1), off)
		if err != nil {
			return "", err
		}
		done = append(done, p)
	}
	store.Count(ctx, store.Usage{Puts: 1})
	out, err := u.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &u.place.bucket, Key: &u.place.name, UploadId: made.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: done}, IfMatch: u.when.ifMatch, IfNoneMatch: u.when.ifNoneMatch,
	})
	if err != nil {
		return "", err
	}
	return tagOf(out.ETag), nil
}

func (u *sending) sendPart(ctx context.Context, id *string, number int32, off int64) (types.CompletedPart, error) {
	n := min(u.part, u.size-off)
	body := upload.NewWindow(u.body, off, n)
	store.Count(ctx, store.Usage{Puts: 1, BytesWritten: n})
	out, err := u.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &u.place.bucket, Key: &u.place.name, UploadId: id, PartNumber: &number, Body: body, ContentLength: &n,
	})
	if err != nil {
		return types.CompletedPart{}, err
	}
	return types.CompletedPart{PartNumber: &number, ETag: out.ETag}, nil
}
