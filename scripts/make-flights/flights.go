package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// The shape of the demo table. Rows stay in the source's order, which is by departure, so files are clustered by time
// and by nothing else.
const (
	keepEvery    = 5 // of 3,000,000 source rows
	fileRows     = 10_000
	rowGroupRows = 5_000
	pageBytes    = 8 << 10 // uncompressed: about 700 ids or 2,000 integers
	compression  = zstd.SpeedBestCompression
)

// source is a row of flights-3m.parquet.
type source struct {
	Date        int64  `parquet:"date,optional"` // microseconds, local time of departure
	Delay       int64  `parquet:"delay,optional"`
	Distance    int64  `parquet:"distance,optional"`
	Origin      string `parquet:"origin,optional"`
	Destination string `parquet:"destination,optional"`
}

// flight is a row of the demo table; the ids are Iceberg field ids.
type flight struct {
	ID          string  `parquet:"flight_id,id(1)"`
	Departed    int64   `parquet:"departed,timestamp(microsecond:local),delta,id(2)"`
	Origin      string  `parquet:"origin,dict,id(3)"`
	Destination string  `parquet:"destination,dict,id(4)"`
	Distance    int32   `parquet:"distance,dict,id(5)"`
	Delay       int32   `parquet:"delay,dict,id(6)"`
	Airport     string  `parquet:"airport,dict,id(7)"`
	State       *string `parquet:"state,dict,optional,id(8)"`
}

type airport struct {
	name  string
	state *string // nil where the source says NA
}

func readAirports(text []byte) (map[string]airport, error) {
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("airports.csv: %w", err)
	}
	out := make(map[string]airport, len(lines))
	for _, line := range lines[1:] { // iata,name,city,state,country,latitude,longitude
		a := airport{name: line[1]}
		if line[3] != "NA" {
			a.state = &line[3]
		}
		out[line[0]] = a
	}
	return out, nil
}

func writeFlights(folder string, parquetFile []byte, airports map[string]airport) error {
	reader := parquet.NewGenericReader[source](bytes.NewReader(parquetFile))
	defer func() { _ = reader.Close() }() // it reads memory
	var (
		buf  = make([]source, fileRows)
		rows = make([]flight, 0, fileRows)
		seen uint64
		file int
	)
	for {
		n, err := reader.Read(buf)
		for _, s := range buf[:n] {
			if seen++; (seen-1)%keepEvery != 0 {
				continue
			}
			to, ok := airports[s.Destination]
			if !ok {
				return fmt.Errorf("airports.csv has no %s", s.Destination)
			}
			rows = append(rows, flight{
				ID: flightID(seen - 1), Departed: s.Date, Origin: s.Origin, Destination: s.Destination,
				Distance: int32(s.Distance), Delay: int32(s.Delay), Airport: to.name, State: to.state,
			})
			if len(rows) == fileRows {
				if err := writeFile(filepath.Join(folder, fmt.Sprintf("flights-%02d.parquet", file)), rows); err != nil {
					return err
				}
				rows, file = rows[:0], file+1
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("flights-3m.parquet: %w", err)
		}
	}
	if len(rows) != 0 {
		return fmt.Errorf("%d rows left over: the source is not the pinned one", len(rows))
	}
	log.Printf("%d files of %d rows in %s", file, fileRows, folder)
	return nil
}

func writeFile(path string, rows []flight) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	writer := parquet.NewGenericWriter[flight](out,
		parquet.Compression(&zstd.Codec{Level: compression}),
		parquet.MaxRowsPerRowGroup(rowGroupRows),
		parquet.PageBufferSize(pageBytes),
		parquet.DataPageStatistics(true),
	)
	_, err = writer.Write(rows)
	return errors.Join(err, writer.Close(), out.Close())
}

// flightID is eight characters of Crockford's base 32 that look random but are a bijection of the source's row number:
// multiplication by an odd number and xor-shifts are invertible modulo 2^40.
func flightID(row uint64) string {
	const (
		mask   = 1<<40 - 1
		digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	)
	x := (row + 1) & mask
	for range 3 {
		x = x * 0x9E3779B97F4A7C15 & mask
		x ^= x >> 21
	}
	var id [8]byte
	for i := range id {
		id[i] = digits[x&31]
		x >>= 5
	}
	return string(id[:])
}
