package catalog

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/store/s3"
)

// access is what a reply to loadTable says about reaching the table's files: its config for all locations, and each of its
// storage-credentials, on top of that, for those that begin with its prefix.
func access(subject string, reply map[string]json.RawMessage) ([]lake.Credential, error) {
	var config map[string]any
	var handed []struct {
		Prefix string         `json:"prefix"`
		Config map[string]any `json:"config"`
	}
	err := json.Unmarshal(orNull(reply["config"]), &config)
	if err == nil {
		err = json.Unmarshal(orNull(reply["storage-credentials"]), &handed)
	}
	if err != nil {
		return nil, fault.New(fault.Corrupt, subject, "bad credentials in the catalog's reply").WithCause(err)
	}
	common := Properties{}
	flatten(common, "", config)
	common = common.only(storage)
	var out []lake.Credential
	if len(common) > 0 {
		out = append(out, lake.Credential{Properties: common})
	}
	for _, h := range handed {
		own := maps.Clone(common)
		flatten(own, "", h.Config)
		out = append(out, lake.Credential{Prefix: h.Prefix, Properties: own.only(storage)})
	}
	return out, nil
}

// only is the properties whose keys begin with one of some prefixes.
func (p Properties) only(prefixes []string) Properties {
	out := Properties{}
	for key, value := range p {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			out[key] = value
		}
	}
	return out
}

// sign signs a request to a catalog of AWS, by PyIceberg's keys rest.signing-name and rest.signing-region.
func (r *rest) sign(ctx context.Context, p Properties, req *http.Request) error {
	signer, err := r.signing(p)
	if err != nil {
		return err
	}
	return signer.Sign(ctx, req)
}

// signers holds the mutex apart from that of the configuration, which is held while the first request is sent.
type signers struct {
	mu     sync.Mutex
	signer *s3.Signer
}

func (r *rest) signing(p Properties) (*s3.Signer, error) {
	r.signers.mu.Lock()
	defer r.signers.mu.Unlock()
	if r.signers.signer != nil {
		return r.signers.signer, nil
	}
	o, err := s3.FromProperties(p)
	if err != nil {
		return nil, err
	}
	if region := p["rest.signing-region"]; region != "" {
		o.Region = region
	}
	name := p["rest.signing-name"]
	if name == "" {
		name = "execute-api"
	}
	r.signers.signer = &s3.Signer{Options: o, Service: name}
	return r.signers.signer, nil
}

// Names are the configured catalogs, sorted.
func (c *Config) Names() []string { return c.names() }

// Check signs in to a catalog and reads nothing of its tables. note says what it is.
func (c *Catalogs) Check(ctx context.Context, name string) (note string, err error) {
	cl, err := c.client(name)
	if err != nil {
		return "", err
	}
	return cl.check(ctx)
}

// check asks for the configuration, which needs what every request needs.
func (r *rest) check(ctx context.Context) (string, error) {
	p, err := r.configure(ctx)
	return "REST catalog at " + p["uri"], err
}

// check reads the catalog's own table.
func (c *sqlCatalog) check(ctx context.Context) (string, error) {
	var n int
	if err := c.db.QueryRowContext(ctx, `SELECT count(*) FROM iceberg_tables WHERE catalog_name = ?`, c.name).Scan(&n); err != nil {
		return "", fault.New(fault.Corrupt, "catalog "+c.name, "its database cannot be read").WithCause(err)
	}
	return "SQL catalog at " + c.path, nil
}
