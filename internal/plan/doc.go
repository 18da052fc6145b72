// Package plan answers: which data files of a snapshot can hold rows that pass a predicate, and how do we know?
//
// It is pure: facts and evidence in, a decision with its reason out. It opens nothing, knows no store, no Iceberg library
// and no clock. This part judges what manifests state, partition values, bounds and counts, in three values: no row passes
// (Out), every row passes (Whole), or Maybe. Everything that is missing, contradictory, damaged or from an unknown transform
// counts as unknown, and unknown evidence never makes a file Out or Whole.
//
// How a leaf is judged. The rows of a file fall into three classes by the leaf's column: null, NaN and the rest. Evidence
// says two things only: which classes can be present, and in which interval the rest lies. The predicate says how it
// treats each class. A file is Out when every class that can be present fails, Whole when every one passes. Evidence that
// contradicts itself says nothing. docs/planning.md has the table of operators and evidence.
package plan
