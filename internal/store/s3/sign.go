package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/skomerdb/skomer/internal/fault"
)

// Signer signs requests to another service of AWS (Signature Version 4) with the credentials that reach buckets.
type Signer struct {
	Options Options
	Service string // as AWS calls it in signatures

	once   sync.Once
	config aws.Config
	err    error
}

// Sign signs a request without a body. An authorization that it has already moves to Original-Authorization, as Iceberg's clients do.
func (s *Signer) Sign(ctx context.Context, req *http.Request) error {
	s.once.Do(func() { s.config, s.err = s.Options.load() })
	if s.err != nil {
		return s.err
	}
	c, err := s.config.Credentials.Retrieve(ctx)
	if err != nil {
		return fault.About("signing for "+s.Service, err)
	}
	if had := req.Header.Get("Authorization"); had != "" {
		req.Header.Del("Authorization")
		req.Header.Set("Original-Authorization", had)
	}
	empty := sha256.Sum256(nil)
	hash := hex.EncodeToString(empty[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	return v4.NewSigner().SignHTTP(ctx, c, req, hash, s.Service, s.config.Region, time.Now())
}
