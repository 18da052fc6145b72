package gcs

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
)

// FromProperties reads PyIceberg's keys gcs.service.host, gcs.oauth2.token, gcs.oauth2.token-expires-at (milliseconds since 1970),
// gcs.requester-pays and gcs.project-id; Iceberg's gcs.no-auth and gcs.user-project; and iceberg-go's gcs.keypath and gcs.jsonkey.
// Other keys are ignored: catalogs have many.
func FromProperties(p map[string]string) (Options, error) {
	o := Options{
		Endpoint: p["gcs.service.host"], Token: p["gcs.oauth2.token"], KeyFile: p["gcs.keypath"], KeyJSON: p["gcs.jsonkey"],
		Project: p["gcs.user-project"],
	}
	if o.Endpoint != "" {
		if u, err := url.Parse(o.Endpoint); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
			return o, fault.New(fault.Invalid, "gcs.service.host", "%q is no http or https URL", o.Endpoint)
		}
	}
	if text := p["gcs.oauth2.token-expires-at"]; text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return o, fault.New(fault.Invalid, "gcs.oauth2.token-expires-at", "%q is no time in milliseconds since 1970", text)
		}
		o.Expires = time.UnixMilli(ms)
	}
	var err error
	if o.Anonymous, err = flag(p, "gcs.no-auth"); err != nil {
		return o, err
	}
	pays, err := flag(p, "gcs.requester-pays")
	if pays && o.Project == "" {
		if o.Project = p["gcs.project-id"]; o.Project == "" {
			return o, fault.New(fault.Invalid, "gcs.requester-pays", "it needs the project that is billed").WithFix("set gcs.project-id")
		}
	}
	return o, err
}

// flag is a boolean property.
func flag(p map[string]string, key string) (bool, error) {
	if p[key] == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(strings.ToLower(p[key]))
	if err != nil {
		return false, fault.New(fault.Invalid, key, "%q is neither true nor false", p[key])
	}
	return b, nil
}
