package facts

// Group is the files of one manifest in compact form, as far as they were read: what judges many files at once works on it.
// File i is entry i of the manifest; a manifest of data files may hold entries of delete files, which nobody asks for.
type Group struct {
	N    int
	Spec int32
	// Tuple is the number of each file's partition tuple, Tuples the distinct ones: row k of a column is of tuple k.
	Tuple   Ints
	Tuples  map[int]*PartitionColumn // by partition field id
	Columns map[int]*Metrics         // by schema field id
}

// Listed is what a manifest list says about the partition tuples of one manifest.
type Listed struct {
	Spec   int32
	Fields []Summary // parallel to the spec's fields; nil: not stated
}

// Summary is the values of one partition field over a manifest. Bounds are in Iceberg's single-value serialisation and leave
// out nulls and NaNs; nil: not stated.
type Summary struct {
	Null         bool // some value may be null
	NaN          bool // some value may be NaN
	Lower, Upper []byte
}
