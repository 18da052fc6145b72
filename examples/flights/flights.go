// Package flights holds the demo data: 600,000 real flights in 60 Parquet files. README.md says where they come from.
package flights

import "embed"

// Data is the folder data with the Parquet files.
//
//go:embed data/*.parquet
var Data embed.FS
