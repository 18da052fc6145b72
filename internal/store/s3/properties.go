package s3

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
)

// FromProperties reads PyIceberg's keys: s3.endpoint, s3.region, s3.access-key-id, s3.secret-access-key, s3.session-token,
// s3.profile-name, s3.role-arn, s3.role-session-name, s3.anonymous and s3.force-virtual-addressing, with client.* as their
// fallback, and Iceberg's s3.path-style-access. Other keys are ignored: catalogs have many.
func FromProperties(p map[string]string) (Options, error) {
	get := func(key string) string {
		if v := p["s3."+key]; v != "" {
			return v
		}
		return p["client."+key]
	}
	o := Options{
		Endpoint: p["s3.endpoint"], Region: get("region"), Profile: get("profile-name"),
		AccessKey: get("access-key-id"), Secret: get("secret-access-key"), Session: get("session-token"),
		RoleARN: get("role-arn"), RoleSession: get("role-session-name"), RoleID: get("external-id"),
	}
	if (o.AccessKey == "") != (o.Secret == "") {
		return o, fault.New(fault.Invalid, "s3.access-key-id", "a key and its secret are given together or not at all").
			WithFix("set both s3.access-key-id and s3.secret-access-key")
	}
	if text := p["s3.session-token-expires-at-ms"]; text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return o, fault.New(fault.Invalid, "s3.session-token-expires-at-ms", "%q is no time in milliseconds since 1970", text)
		}
		o.Expires = time.UnixMilli(ms)
	}
	if o.Endpoint != "" {
		if u, err := url.Parse(o.Endpoint); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
			return o, fault.New(fault.Invalid, "s3.endpoint", "%q is no http or https URL", o.Endpoint)
		}
	}
	anonymous, err := flag(p, "s3.anonymous")
	if err != nil {
		return o, err
	}
	o.Anonymous = anonymous != nil && *anonymous
	if o.PathStyle, err = flag(p, "s3.path-style-access"); err != nil || o.PathStyle != nil {
		return o, err
	}
	virtual, err := flag(p, "s3.force-virtual-addressing")
	if virtual != nil {
		path := !*virtual
		o.PathStyle = &path
	}
	return o, err
}

// flag is a boolean property; nil if it is not set.
func flag(p map[string]string, key string) (*bool, error) {
	if p[key] == "" {
		return nil, nil
	}
	b, err := strconv.ParseBool(strings.ToLower(p[key]))
	if err != nil {
		return nil, fault.New(fault.Invalid, key, "%q is neither true nor false", p[key])
	}
	return &b, nil
}
