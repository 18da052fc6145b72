package azure

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store/upload"
)

// act is a request, as far as its errors differ.
type act struct {
	permission string      // the data action that it needs
	changed    fault.Class // what a failed precondition means
}

const blobs = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/"

var (
	reading  = act{permission: blobs + "read", changed: fault.Stale}
	listing  = act{permission: blobs + "read"}
	writing  = act{permission: blobs + "write", changed: fault.Conflict}
	deleting = act{permission: blobs + "delete"}
)

// classify names what failed, why, and what can be done.
func classify(ctx context.Context, key string, p place, a act, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fault.About(key, ctx.Err())
	}
	if fault.ClassOf(err) != fault.Unclassified { // credentials
		return fault.About(key, err)
	}
	var login *azidentity.AuthenticationFailedError
	if errors.As(err, &login) {
		return fault.New(fault.Denied, key, "no token for the credentials").WithCause(err).WithFix(howTo)
	}
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return upload.Unsent(key, err)
	}
	said := http.StatusText(answer.StatusCode)
	if answer.ErrorCode != "" {
		said = answer.ErrorCode
	}
	e := coded(answer.ErrorCode, p)
	if e == nil {
		e = byStatus(answer.StatusCode, a, p)
	}
	e.Subject = key
	if e.Reason == "" {
		e.Reason = said
	}
	return e
}

// coded classifies by the service's error code; nil if the status says enough.
func coded(code string, p place) *fault.Error {
	switch code {
	case "ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled":
		return fault.New(fault.NotFound, "", "there is no container %q in the account %s", p.container, p.account).
			WithFix("check the container's name and the account")
	case "AuthenticationFailed", "InvalidAuthenticationInfo":
		return fault.New(fault.Denied, "", "").WithFix("check the account key, the signature or the token, its end, and this machine's clock")
	case "NoAuthenticationInformation":
		return fault.New(fault.Denied, "", "").WithFix(howTo)
	case "InvalidBlockList": // somebody else's commit has removed the blocks
		return fault.New(fault.Conflict, "", "somebody else wrote it meanwhile")
	case "ServerBusy", "AccountIopsLimitExceeded", "SnapshotOperationRateExceeded":
		return fault.New(fault.Exhausted, "", "").WithRetry()
	case "BlobArchived", "BlobBeingRehydrated":
		return fault.New(fault.Unsupported, "", "the blob is archived").WithFix("move it to a tier that can be read")
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
		return fault.New(fault.Denied, "", "").WithFix("the identity needs %s on the container %s of the account %s", a.permission, p.container, p.account)
	case status == http.StatusPreconditionFailed && a.changed == fault.Stale:
		return fault.New(fault.Stale, "", "changed since it was described")
	case status == http.StatusPreconditionFailed || status == http.StatusConflict:
		return fault.New(fault.Conflict, "", "somebody else wrote it first")
	case status == http.StatusTooManyRequests:
		return fault.New(fault.Exhausted, "", "").WithRetry()
	case status == http.StatusServiceUnavailable && a.changed != fault.Conflict:
		return fault.New(fault.Exhausted, "", "").WithRetry()
	case status == http.StatusRequestTimeout || status >= 500: // a write may have been done
		return fault.New(fault.Unclassified, "", "").WithRetry()
	}
	return fault.New(fault.Invalid, "", "")
}
