package s3

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	fallbackRegion = "us-east-1"
	// headerTimeout is how long a server may think before it answers; the answer itself may take any time.
	headerTimeout = time.Minute
	// early is how long before their end credentials are renewed.
	early = time.Minute
)

// connect makes the client at its first use. It reads configuration files and sends nothing.
func (s *Store) connect() (*s3.Client, error) {
	s.once.Do(func() {
		var c aws.Config
		if c, s.err = s.options.load(); s.err == nil {
			s.keys, _ = c.Credentials.(*aws.CredentialsCache)
			s.client = s3.NewFromConfig(c, s.options.apply)
		}
	})
	return s.client, s.err
}

func (o Options) load() (aws.Config, error) {
	load := []func(*config.LoadOptions) error{
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 2*o.Concurrency, o.Concurrency
			t.ResponseHeaderTimeout = headerTimeout
		})),
	}
	if o.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(o.Profile))
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	switch {
	case o.Renew != nil:
		load = append(load, config.WithCredentialsProvider(aws.AnonymousCredentials{})) // so that none are looked for
	case o.AccessKey != "":
		load = append(load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(o.AccessKey, o.Secret, o.Session)))
	}
	c, err := config.LoadDefaultConfig(context.Background(), load...)
	if err != nil {
		return c, fault.New(fault.Invalid, "configuration of AWS", "cannot be read").WithCause(err)
	}
	if c.Region == "" {
		c.Region = fallbackRegion
	}
	switch {
	case o.Anonymous:
		c.Credentials = aws.AnonymousCredentials{}
	case o.Renew != nil:
		c.Credentials = cached(renewed(o.Renew))
	case o.RoleARN != "":
		c.Credentials = cached(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(c), o.RoleARN, o.assume))
	default:
		c.Credentials = cached(c.Credentials)
	}
	return c, nil
}

// cached keeps credentials until shortly before they end.
func cached(p aws.CredentialsProvider) *aws.CredentialsCache {
	return aws.NewCredentialsCache(told{p}, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = early })
}

func (o Options) assume(a *stscreds.AssumeRoleOptions) {
	a.RoleSessionName = "skomer"
	if o.RoleSession != "" {
		a.RoleSessionName = o.RoleSession
	}
	if o.RoleID != "" {
		a.ExternalID = &o.RoleID
	}
}

func (o Options) apply(c *s3.Options) {
	if o.Endpoint != "" {
		c.BaseEndpoint = &o.Endpoint
	}
	c.UsePathStyle = c.BaseEndpoint != nil
	if o.PathStyle != nil {
		c.UsePathStyle = *o.PathStyle
	}
	// Servers other than Amazon's often do not know the newer checksums; requests are signed over their content anyway.
	c.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	c.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	c.DisableLogOutputChecksumValidationSkipped = true
}

// renewed is credentials that somebody hands out again and again.
type renewed func(context.Context) (Keys, error)

// Retrieve implements aws.CredentialsProvider.
func (r renewed) Retrieve(ctx context.Context) (aws.Credentials, error) {
	k, err := r(ctx)
	if err != nil {
		return aws.Credentials{}, fault.New(fault.Denied, "credentials", "they could not be renewed").WithCause(err)
	}
	return aws.Credentials{
		AccessKeyID: k.AccessKey, SecretAccessKey: k.Secret, SessionToken: k.Session, Source: "handed out by the catalog",
		CanExpire: !k.Expires.IsZero(), Expires: k.Expires,
	}, nil
}

// ended drops credentials that the server says have ended. It reports whether there will be others.
func (s *Store) ended() bool {
	if s.options.Renew == nil || s.keys == nil {
		return false
	}
	s.keys.Invalidate()
	return true
}

// Identity implements store.Identified.
func (s *Store) Identity(ctx context.Context) (store.Identity, error) {
	if _, err := s.connect(); err != nil {
		return store.Identity{}, err
	}
	if s.keys == nil {
		return store.Identity{Source: "anonymous"}, nil
	}
	c, err := s.keys.Retrieve(ctx)
	if err != nil {
		return store.Identity{}, err
	}
	id := store.Identity{Name: c.AccessKeyID, Source: c.Source, Expires: s.options.Expires}
	if c.CanExpire {
		id.Expires = c.Expires
	}
	return id, nil
}

// told makes the failure to find credentials an error that says what to do.
type told struct{ aws.CredentialsProvider }

func (t told) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := t.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil && fault.ClassOf(err) == fault.Unclassified {
		err = fault.New(fault.Denied, "credentials", "none could be found").WithCause(err).
			WithFix("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or s3.access-key-id and s3.secret-access-key of the catalog; s3.anonymous reads public buckets")
	}
	return c, err
}
