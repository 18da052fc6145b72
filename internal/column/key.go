package column

// FloatKey is the number whose big-endian bytes AppendKey appends for a Float or Double, for loops over whole vectors.
func FloatKey(f float64) uint64 { return floatKey(f) }
