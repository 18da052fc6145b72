package gcs

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store/ranges"
	"github.com/skomerdb/skomer/internal/store/upload"
)

// act is a request, as far as its errors differ.
type act struct {
	permission string
	changed    fault.Class // what a failed precondition means
	ranged     bool        // a range is asked for
}

var (
	reading  = act{permission: "storage.objects.get", changed: fault.Stale}
	ranging  = act{permission: "storage.objects.get", changed: fault.Stale, ranged: true}
	listing  = act{permission: "storage.objects.list"}
	writing  = act{permission: "storage.objects.create", changed: fault.Conflict}
	renewing = act{permission: "storage.objects.create and storage.objects.delete, to replace it,", changed: fault.Conflict}
	deleting = act{permission: "storage.objects.delete"}
)

var unsent = upload.Unsent

// answered names what failed, why, and what can be done.
func answered(key string, p place, a act, resp *http.Response) error {
	if a.ranged && resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return ranges.ErrOutside
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what is missing was only for the message
	var reply struct {
		Error struct {
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
		} `json:"error"`
	}
	said, reason := http.StatusText(resp.StatusCode), ""
	if json.Unmarshal(b, &reply) == nil && reply.Error.Message != "" {
		said = reply.Error.Message
		if len(reply.Error.Errors) > 0 {
			reason = reply.Error.Errors[0].Reason
		}
	} else if text := strings.TrimSpace(string(b)); text != "" && len(text) < 200 && !strings.HasPrefix(text, "<") {
		said = text
	}
	e := byStatus(resp.StatusCode, reason, said, p, a)
	e.Subject = key
	if e.Reason == "" {
		e.Reason = said
	}
	return e
}

func byStatus(status int, reason, said string, p place, a act) *fault.Error {
	switch {
	case status == http.StatusTooManyRequests || strings.HasSuffix(reason, "ateLimitExceeded"): // some limits come as 403
		return fault.New(fault.Exhausted, "", "").WithRetry()
	case status == http.StatusNotFound && strings.Contains(said, "bucket does not exist"):
		return fault.New(fault.NotFound, "", "there is no bucket %q", p.bucket).WithFix("check the bucket's name and gcs.service.host")
	case status == http.StatusNotFound && a.changed == fault.Conflict:
		return fault.New(fault.Conflict, "", "the object to replace, or its bucket, is gone")
	case status == http.StatusNotFound:
		return fault.New(fault.NotFound, "", "no such object")
	case status == http.StatusUnauthorized:
		return fault.New(fault.Denied, "", "").WithFix(howTo)
	case status == http.StatusForbidden:
		return fault.New(fault.Denied, "", "").WithFix("the identity needs %s on the bucket %s", a.permission, p.bucket)
	case status == http.StatusPreconditionFailed && a.changed == fault.Stale:
		return fault.New(fault.Stale, "", "changed since it was described")
	case status == http.StatusPreconditionFailed:
		return fault.New(fault.Conflict, "", "somebody else wrote it first")
	case status == http.StatusConflict:
		return fault.New(fault.Conflict, "", "").WithRetry()
	case status == http.StatusServiceUnavailable && a.changed != fault.Conflict:
		return fault.New(fault.Exhausted, "", "").WithRetry()
	case status == http.StatusRequestTimeout || status >= 500: // a write may have been done
		return fault.New(fault.Unclassified, "", "").WithRetry()
	}
	return fault.New(fault.Invalid, "", "")
}
