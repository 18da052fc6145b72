package azure

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
)

// FromProperties reads PyIceberg's keys adls.account-name, adls.account-key, adls.sas-token (also with .<account> or
// .<account host> behind it, as catalogs hand them out), adls.connection-string, adls.tenant-id, adls.client-id,
// adls.client-secret, adls.token, adls.account-host, adls.blob-storage-authority and adls.blob-storage-scheme; and adls.anonymous.
// Other keys are ignored: catalogs have many.
func FromProperties(p map[string]string) (Options, error) {
	o := Options{
		Account: p["adls.account-name"], Key: p["adls.account-key"], Token: p["adls.token"],
		Tenant: p["adls.tenant-id"], ClientID: p["adls.client-id"], Secret: p["adls.client-secret"],
	}
	for key, value := range p {
		if rest, ok := strings.CutPrefix(key, "adls.sas-token"); ok && value != "" && (rest == "" || rest[0] == '.') {
			if o.SAS == nil {
				o.SAS = map[string]string{}
			}
			account, _, _ := strings.Cut(strings.TrimPrefix(rest, "."), ".")
			o.SAS[account] = value
		}
	}
	for key, value := range p {
		if rest, ok := strings.CutPrefix(key, "adls.sas-token-expires-at-ms"); ok && value != "" {
			ms, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return o, fault.New(fault.Invalid, key, "%q is no time in milliseconds since 1970", value)
			}
			account, _, _ := strings.Cut(strings.TrimPrefix(rest, "."), ".")
			if o.Expires == nil {
				o.Expires = map[string]time.Time{}
			}
			o.Expires[account] = time.UnixMilli(ms)
		}
	}
	if text := p["adls.connection-string"]; text != "" {
		if err := o.connection(text); err != nil {
			return o, err
		}
	}
	if o.Key != "" && o.Account == "" {
		return o, fault.New(fault.Invalid, "adls.account-key", "it needs the account that it belongs to").WithFix("set adls.account-name")
	}
	if o.Secret != "" && (o.Tenant == "" || o.ClientID == "") {
		return o, fault.New(fault.Invalid, "adls.client-secret", "it needs the application and its tenant").WithFix("set adls.client-id and adls.tenant-id")
	}
	if host := p["adls.account-host"]; host != "" {
		o.Endpoint = "https://" + strings.Replace(host, ".dfs.", ".blob.", 1)
	}
	if authority := p["adls.blob-storage-authority"]; authority != "" {
		o.Endpoint = endpoint(p["adls.blob-storage-scheme"], o.Account, authority)
	}
	if o.Endpoint != "" {
		if u, err := url.Parse(o.Endpoint); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
			return o, fault.New(fault.Invalid, "the endpoint of Azure", "%q is no http or https URL", o.Endpoint)
		}
	}
	if text := p["adls.anonymous"]; text != "" {
		var err error
		if o.Anonymous, err = strconv.ParseBool(strings.ToLower(text)); err != nil {
			return o, fault.New(fault.Invalid, "adls.anonymous", "%q is neither true nor false", text)
		}
	}
	return o, nil
}

// endpoint is the blob service by an authority as Arrow reads it: one that begins with a dot follows the account's name, any other
// has the account in its path.
func endpoint(scheme, account, authority string) string {
	if scheme == "" {
		scheme = "https"
	}
	if strings.HasPrefix(authority, ".") {
		return scheme + "://" + account + authority
	}
	return scheme + "://" + authority + "/" + account
}

// connection reads a connection string: KEY=VALUE, separated by semicolons.
func (o *Options) connection(text string) error {
	parts := map[string]string{}
	for _, part := range strings.Split(text, ";") {
		if name, value, ok := strings.Cut(part, "="); ok {
			parts[name] = value
		}
	}
	o.Account, o.Key, o.Endpoint = parts["AccountName"], parts["AccountKey"], parts["BlobEndpoint"]
	if sas := parts["SharedAccessSignature"]; sas != "" {
		o.SAS = map[string]string{o.Account: sas}
	}
	if o.Endpoint == "" && o.Account != "" {
		scheme, suffix := parts["DefaultEndpointsProtocol"], parts["EndpointSuffix"]
		if suffix == "" {
			suffix = "core.windows.net"
		}
		o.Endpoint = endpoint(scheme, o.Account, ".blob."+suffix)
	}
	if o.Endpoint == "" || o.Key == "" && len(o.SAS) == 0 {
		return fault.New(fault.Invalid, "adls.connection-string", "it needs an account or a blob endpoint, and a key or a signature")
	}
	return nil
}
