package s3

import (
	"context"
	"errors"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store/upload"
)

// act is a request, as far as its errors differ.
type act struct {
	permission string
	onBucket   bool        // the permission is one on the bucket
	changed    fault.Class // what a failed precondition means
}

var (
	reading  = act{permission: "s3:GetObject", changed: fault.Stale}
	listing  = act{permission: "s3:ListBucket", onBucket: true}
	writing  = act{permission: "s3:PutObject", changed: fault.Conflict}
	deleting = act{permission: "s3:DeleteObject"}
)

// classify names what failed, why, and what can be done. Credentials that have ended pass if there are others.
func (s *Store) classify(ctx context.Context, key string, p place, a act, err error) error {
	err = classify(ctx, key, p, a, err)
	var e *fault.Error
	if errors.As(err, &e) && e.Fix == tokenEnded && s.ended() {
		e.Retry = true
	}
	return err
}

const tokenEnded = "the session token has expired: get another one"

func classify(ctx context.Context, key string, p place, a act, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fault.About(key, ctx.Err())
	}
	if fault.ClassOf(err) != fault.Unclassified { // credentials, or the caller's own reader
		return fault.About(key, err)
	}
	var answer *awshttp.ResponseError
	if !errors.As(err, &answer) || answer.HTTPStatusCode() == 0 {
		return upload.Unsent(key, err)
	}
	said := words{error: err, status: answer.HTTPStatusCode(), request: answer.ServiceRequestID()}
	_ = errors.As(err, &said.api) // nil: the answer had no body, as that to a HEAD has none
	e := coded(said.code(), p)
	if e == nil {
		e = byStatus(said.status, a, p)
	}
	e.Subject = key
	if region := answer.Response.Header.Get("X-Amz-Bucket-Region"); region != "" && e.Class == fault.Invalid {
		e.Fix = "the bucket is in the region " + region + ": set s3.region or AWS_REGION to it"
	}
	return e.WithCause(said)
}

// words is what a server said, in one clause; the whole error is for those who unwrap.
type words struct {
	error
	status  int
	request string // id, for the server's owner; may be empty
	api     smithy.APIError
}

func (w words) Unwrap() error { return w.error }

func (w words) code() string {
	if w.api == nil {
		return ""
	}
	return w.api.ErrorCode()
}

// Error implements error.
func (w words) Error() string {
	said := http.StatusText(w.status)
	if code := w.code(); code != "" {
		said = code
		if message := w.api.ErrorMessage(); message != "" {
			said += ": " + message
		}
	}
	if w.request != "" {
		said += " (request " + w.request + ")"
	}
	return said
}

// coded classifies by S3's error code; nil if the status says enough.
func coded(code string, p place) *fault.Error {
	switch code {
	case "NoSuchBucket":
		return fault.New(fault.NotFound, "", "there is no bucket %q", p.bucket).WithFix("check the bucket's name and s3.endpoint")
	case "ExpiredToken", "ExpiredTokenException":
		return fault.New(fault.Denied, "", "").WithFix(tokenEnded)
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "AuthFailure":
		return fault.New(fault.Denied, "", "").WithFix("check the access key, its secret and the session token")
	case "RequestTimeTooSkewed":
		return fault.New(fault.Denied, "", "").WithFix("set this machine's clock")
	case "ConditionalRequestConflict", "OperationAborted":
		return fault.New(fault.Conflict, "", "").WithRetry()
	case "RequestTimeout", "InternalError":
		return fault.New(fault.Unclassified, "", "").WithRetry()
	case "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "BandwidthLimitExceeded":
		return fault.New(fault.Exhausted, "", "").WithRetry()
	}
	return nil
}

func byStatus(status int, a act, p place) *fault.Error {
	switch {
	case status == http.StatusNotFound && a.changed == fault.Conflict:
		return fault.New(fault.Conflict, "", "the object to replace is gone")
	case status == http.StatusNotFound:
		return fault.New(fault.NotFound, "", "no such object")
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.New(fault.Denied, "", "").WithFix("the identity needs %s on %s", a.permission, a.resource(p))
	case status == http.StatusPreconditionFailed && a.changed == fault.Stale:
		return fault.New(fault.Stale, "", "changed since it was described")
	case status == http.StatusPreconditionFailed || status == http.StatusConflict:
		return fault.New(fault.Conflict, "", "somebody else wrote it first")
	case status == http.StatusRequestedRangeNotSatisfiable:
		return fault.New(fault.Corrupt, "", "the range begins behind the object's end")
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable && a.changed != fault.Conflict:
		return fault.New(fault.Exhausted, "", "").WithRetry()
	case status == http.StatusNotImplemented:
		return fault.New(fault.Unsupported, "", "")
	case status >= 500: // a write may have been done, by a server behind the one that answered
		return fault.New(fault.Unclassified, "", "").WithRetry()
	}
	return fault.New(fault.Invalid, "", "")
}

// resource is what a permission is granted on.
func (a act) resource(p place) string {
	if a.onBucket {
		return "arn:aws:s3:::" + p.bucket
	}
	return "arn:aws:s3:::" + p.bucket + "/" + p.name
}
