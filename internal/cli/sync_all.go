package cli

import (
	"context"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
)

// syncedTable is what became of one table of a pattern: a report, an error, or both.
type syncedTable struct {
	Table  string             `json:"table"`
	Report *skomer.SyncReport `json:"report,omitempty"`
	Error  *failure           `json:"error,omitempty"`
}

// syncAll syncs the mounted tables of a pattern, one after another, and ends with the first error that there was.
func (a *app) syncAll(ctx context.Context, pattern string, f syncFlags) (first error) {
	if a.flags.overlay != "" {
		return fault.New(fault.Invalid, "--overlay", "is about one table").WithFix("set overlay-root, below which each table has its own")
	}
	if f.follow > 0 {
		return fault.New(fault.Invalid, "--follow", "is about one table").WithFix("start one follower for each table")
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	names, err := client.Tables(ctx, pattern)
	if err != nil {
		return err
	}
	done := []syncedTable{}
	for _, name := range names {
		if ctx.Err() != nil || f.spent {
			break
		}
		report, mounted, err := a.syncOne(ctx, name, &f)
		if !mounted && err == nil {
			continue
		}
		if err == nil {
			err = blind(name, report)
		}
		one := syncedTable{Table: name, Report: report}
		if err != nil {
			failed := describeError(err)
			one.Error = &failed
			if first == nil {
				first = err
			}
		}
		done = append(done, one)
		a.sayOne(one, err)
	}
	if len(done) == 0 && ctx.Err() == nil {
		return fault.New(fault.NotFound, pattern, "matches %s, and none is mounted", counted(len(names), "table")).WithFix("skomer mount TABLE")
	}
	if a.flags.output == "json" {
		if err := a.json(done); err != nil {
			return err
		}
	}
	if f.spent {
		a.hint("ended early: what --max-cost allows is spent")
	}
	if first != nil {
		return silent(exitCode(first))
	}
	return ctx.Err()
}

// syncOne syncs one table, if it is mounted, and takes what that cost off the limit.
func (a *app) syncOne(ctx context.Context, name string, f *syncFlags) (r *skomer.SyncReport, mounted bool, err error) {
	options, err := a.tableOptions()
	if err != nil {
		return nil, false, err
	}
	client, err := a.client()
	if err != nil {
		return nil, false, err
	}
	t, err := client.Open(ctx, name, options)
	if err != nil {
		return nil, false, err
	}
	defer t.Close()
	if mounted, err = t.Mounted(ctx); err != nil || !mounted {
		return nil, mounted, err
	}
	r, err = a.sync(ctx, t, f.options)
	if r != nil && f.options.MaxCost > 0 {
		f.options.MaxCost -= r.Cost
		f.spent = f.options.MaxCost <= 0
	}
	return r, true, err
}

// sayOne tells of one table in a line, on standard error where it failed.
func (a *app) sayOne(one syncedTable, err error) {
	switch {
	case a.flags.output == "json":
	case err != nil:
		printError(a.err, fault.About(one.Table, err), false)
	default:
		a.say("%s  %s", one.Table, followed(one.Report))
	}
}
