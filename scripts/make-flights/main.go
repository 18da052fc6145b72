// Command make-flights writes the demo data: 600,000 real US flights as 60 Parquet files with Iceberg field ids.
//
// It fetches one pinned version of the npm package vega-datasets, checks it, and is deterministic: the same version gives
// the same bytes. The files it wrote are committed under examples/flights/data; run it only to prove where they came from.
//
//	go run ./scripts/make-flights examples/flights/data
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

// The package and its integrity as the npm registry states it.
const (
	npmPackage = "vega-datasets@3.2.1"
	integrity  = "sha512-lTSwZA6yq6qSU2YZm+6bqILiIvTPPxn4itir7jPGFmHIdPvUfQ9pCzzcrklYywMJgLUbaIeSkZQdiJd6wBxPug=="
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: make-flights FOLDER")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, folder string) error {
	work, err := os.MkdirTemp("", "make-flights-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	files, err := fetch(ctx, work, "package/data/flights-3m.parquet", "package/data/airports.csv")
	if err != nil {
		return err
	}
	airports, err := readAirports(files["package/data/airports.csv"])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return writeFlights(folder, files["package/data/flights-3m.parquet"], airports)
}

// fetch packs the npm package into work, verifies its integrity and returns the named members.
func fetch(ctx context.Context, work string, members ...string) (map[string][]byte, error) {
	pack := exec.CommandContext(ctx, "npm", "pack", "--silent", npmPackage)
	pack.Dir = work
	pack.Stderr = os.Stderr
	if err := pack.Run(); err != nil {
		return nil, fmt.Errorf("npm pack %s: %w", npmPackage, err)
	}
	found, err := filepath.Glob(filepath.Join(work, "*.tgz"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("npm pack %s: %d archives, want 1", npmPackage, len(found))
	}
	archive, err := os.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512(archive)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != integrity {
		return nil, fmt.Errorf("%s: integrity %s, want %s", npmPackage, got, integrity)
	}
	return extract(archive, members)
}

func extract(archive []byte, members []string) (map[string][]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte)
	reader := tar.NewReader(unzipped)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, name := range members {
			if header.Name != name {
				continue
			}
			if out[name], err = io.ReadAll(reader); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range members {
		if out[name] == nil {
			return nil, fmt.Errorf("%s has no %s", npmPackage, name)
		}
	}
	return out, nil
}
