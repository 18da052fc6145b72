package skomer

// Price is what a cloud takes for requests, bytes and time, in US dollars.
type Price struct {
	Name string `json:"name" yaml:"name"`
	// Get and Put are per request, Transfer per GB read from another region or out of the cloud (0 within a region), Storage per GB and
	// month, Core per hour of one core.
	Get      float64 `json:"get" yaml:"get"`
	Put      float64 `json:"put" yaml:"put"`
	Transfer float64 `json:"transfer_gb" yaml:"transfer-gb"`
	Storage  float64 `json:"storage_gb_month" yaml:"storage-gb-month"`
	Core     float64 `json:"core_hour" yaml:"core-hour"`
}

// Prices are list prices of the large clouds' standard storage within one region (Amazon us-east-1, Google us-central1, Azure East US,
// hot, locally redundant) and of a general-purpose core, as published in 2025. They are for orders of magnitude.
var Prices = []Price{
	{Name: "s3", Get: 0.4e-6, Put: 5e-6, Storage: 0.023, Core: 0.048},
	{Name: "gcs", Get: 0.4e-6, Put: 5e-6, Storage: 0.020, Core: 0.048},
	{Name: "azure", Get: 0.5e-6, Put: 6.5e-6, Storage: 0.018, Core: 0.048},
}

// Reading is what so many requests and bytes take to read.
func (p *Price) Reading(requests, bytes float64) float64 {
	return requests*p.Get + bytes/1e9*p.Transfer
}

// Money is what an answer and the plain scan take at a price.
type Money struct {
	Profile string  `json:"profile"`
	Query   float64 `json:"query_usd"` // of the requests and bytes of the explanation
	Scan    float64 `json:"scan_usd"`  // of a plain scan, as it was estimated
}
