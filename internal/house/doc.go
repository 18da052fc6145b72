// Package house answers, by its tests alone: does the code keep to the plan of the house?
//
// The table in floors_test.go is the plan: which floor each room stands on and what it may use. Imports point down only. The
// other tests hold names, sizes and the truth of the pages that people read. The package has no code of its own.
package house
