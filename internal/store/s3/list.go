package s3

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// pageMost is how many objects one request lists or deletes at most.
const pageMost = 1000

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, keys []string) []store.Info {
	return s.reader.Stat(ctx, keys)
}

func (s *Store) stat(ctx context.Context, client *s3.Client, key string, p place) (store.Info, error) {
	out, err := client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &p.bucket, Key: &p.name})
	if err != nil {
		return store.Info{}, s.classify(ctx, key, p, reading, err)
	}
	return info(key, out.ContentLength, out.ETag, out.LastModified), nil
}

// info describes an object. Times are whole seconds: HEAD has no others.
func info(key string, size *int64, etag *string, modified *time.Time) store.Info {
	return store.Info{Key: key, Size: aws.ToInt64(size), Tag: tagOf(etag), Modified: aws.ToTime(modified).UTC().Truncate(time.Second)}
}

// List implements store.Store. prefix holds at least the bucket and the slash behind it. Some servers, and Amazon's directory
// buckets, list in an order of their own; what they say is refused rather than cut off at the wrong place.
func (s *Store) List(ctx context.Context, prefix, after string, most int) ([]store.Info, error) {
	if ctx.Err() != nil {
		return nil, fault.About(prefix, ctx.Err())
	}
	p, err := parse(prefix)
	if err != nil {
		return nil, err
	}
	start, within := strings.CutPrefix(after, p.base)
	if !within && after > p.base {
		return nil, nil
	}
	var out []store.Info
	for len(out) < most {
		page, more, err := s.page(ctx, prefix, p, start, most-len(out))
		if err != nil {
			return nil, err
		}
		out = append(out, page...)
		if !more || len(page) == 0 {
			break
		}
		start = strings.TrimPrefix(page[len(page)-1].Key, p.base)
	}
	return out, nil
}

// page lists up to most objects behind start; more: there are others.
func (s *Store) page(ctx context.Context, prefix string, p place, start string, most int) (_ []store.Info, more bool, err error) {
	pass, err := s.enter(ctx, prefix)
	if err != nil {
		return nil, false, err
	}
	defer func() { pass.Leave(err) }()
	client, err := s.connect()
	if err != nil {
		return nil, false, fault.About(prefix, err)
	}
	in := &s3.ListObjectsV2Input{Bucket: &p.bucket, Prefix: &p.name, MaxKeys: aws.Int32(int32(min(most, pageMost)))}
	if start != "" {
		in.StartAfter = aws.String(start)
	}
	store.Count(ctx, store.Usage{Lists: 1})
	out, err := client.ListObjectsV2(ctx, in)
	if err != nil {
		return nil, false, s.classify(ctx, prefix, p, listing, err)
	}
	var infos []store.Info
	for _, o := range out.Contents {
		name := aws.ToString(o.Key)
		if name <= start && start != "" {
			return nil, false, fault.New(fault.Unsupported, prefix, "the server lists objects out of order: %q behind %q", name, start)
		}
		infos, start = append(infos, info(p.base+name, o.Size, o.ETag, o.LastModified)), name
	}
	return infos, aws.ToBool(out.IsTruncated), nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	batches := map[string][]string{} // by bucket
	for _, key := range keys {
		p, err := object(key)
		if err != nil {
			return err
		}
		batches[p.bucket] = append(batches[p.bucket], key)
	}
	for _, batch := range batches {
		for len(batch) > 0 {
			n := min(len(batch), pageMost)
			if err := s.deleteBatch(ctx, batch[:n]); err != nil {
				return err
			}
			batch = batch[n:]
		}
	}
	return nil
}

func (s *Store) deleteBatch(ctx context.Context, keys []string) (err error) {
	pass, err := s.enter(ctx, keys[0])
	if err != nil {
		return err
	}
	defer func() { pass.Leave(err) }()
	client, err := s.connect()
	if err != nil {
		return fault.About(keys[0], err)
	}
	first, _ := object(keys[0])
	d := &types.Delete{Quiet: aws.Bool(true)}
	for _, key := range keys {
		p, _ := object(key)
		d.Objects = append(d.Objects, types.ObjectIdentifier{Key: &p.name})
	}
	store.Count(ctx, store.Usage{Deletes: 1})
	out, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &first.bucket, Delete: d})
	if err != nil {
		return s.classify(ctx, keys[0], first, deleting, err)
	}
	for _, e := range out.Errors {
		if aws.ToString(e.Code) != "NoSuchKey" {
			return undeleted(first, e)
		}
	}
	return nil
}

// undeleted is why one object of a batch is still there.
func undeleted(p place, e types.Error) error {
	p.name = aws.ToString(e.Key)
	code := aws.ToString(e.Code)
	f := coded(code, p)
	if f == nil && code == "AccessDenied" {
		f = fault.New(fault.Denied, "", "").WithFix("the identity needs %s on %s", deleting.permission, deleting.resource(p))
	}
	if f == nil {
		f = fault.New(fault.Unclassified, "", "")
	}
	f.Subject, f.Reason = p.base+p.name, code+": "+aws.ToString(e.Message)
	return f
}
