// Command mutate breaks one rule at a time and demands that the test named beside it notices.
//
// A mutation is a file of testdata/mutations: a case of docs/cases.md, the lines of one source file that hold its rule, other
// lines in their place, and the test that must fail then. The tree is never changed: the other lines reach the compiler through
// go's -overlay flag. Anything but a failed assertion is an error: a mutation that survives, that no longer applies, that does
// not compile, or a test that panics, hangs, is skipped or fails without the mutation too.
//
//	go run ./scripts/mutate [NAME…]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const folder = "testdata/mutations"

func main() {
	log.SetFlags(0)
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: mutate [NAME…]\nRuns the mutations of "+folder+" whose names start with a NAME, or all.")
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, names []string) error {
	all, err := readAll(folder)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		all = slices.DeleteFunc(all, func(m *mutation) bool {
			return !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(m.name, n) })
		})
	}
	if len(all) == 0 {
		return fmt.Errorf("no mutations named so in %s", folder)
	}
	work, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	began := time.Now()
	results, err := (&lab{root: ".", work: work}).runAll(ctx, all)
	if err != nil {
		return err
	}
	return report(all, results, time.Since(began))
}

// report prints a line for each mutation, and what went wrong below.
func report(all []*mutation, results []result, took time.Duration) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MUTATION\tFILE\tTEST\tRESULT\tSECONDS")
	bad := 0
	for i, m := range all {
		if results[i].outcome != killed {
			bad++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f\n", m.name, m.file, m.test, results[i].outcome, results[i].took.Seconds())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, m := range all {
		if r := results[i]; r.outcome != killed {
			fmt.Printf("\n%s: %s\n  rule: %s\n%s", m.name, r.outcome, m.rule, indent(r.output))
		}
	}
	fmt.Printf("%d of %d mutations killed in %.0f s\n", len(all)-bad, len(all), took.Seconds())
	if bad > 0 {
		return fmt.Errorf("%d mutations were not noticed as they should be", bad)
	}
	return nil
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  | " + line)
	}
	return b.String()
}
