// Package mask answers: which rows of a data file are deleted at a snapshot?
//
// It applies the scope rules of the Iceberg specification ("Scan Planning") to the delete files of a snapshot's facts, reads
// position deletes, equality deletes and deletion vectors in a few waves for many data files together, and keeps what it
// learnt in a cache of bounded size. A delete file that cannot be read is an error: it is part of the table. The package
// knows nothing of predicates, of indexes, or of which rows a query asks for beyond a set of positions.
package mask
