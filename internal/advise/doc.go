// Package advise answers: what is in a table, which index would pay on which of its columns, and what would it cost?
//
// Statistics come from sketches where they were built and from manifests and footers elsewhere; what neither states is unknown and
// reported as such. Estimates are measured on a few row groups of the table itself with the builders that a sync runs. The package
// writes nothing, and knows no catalog.
package advise
