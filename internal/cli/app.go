package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

// app is one run of the command.
type app struct {
	self      string // how the user calls the program
	out, err  io.Writer
	env       environment
	cancel    context.CancelFunc // of --timeout
	started   bool               // arguments were understood
	made      *skomer.Client     // nil: not yet
	tables    []*skomer.Table    // to be closed at the end
	erasing   erasing            // what the configuration says of erasures
	atEnd     []func()           // after that
	metricsAt string             // address at which metrics are served
	flags     struct {
		config, catalog, overlay, output string
		logLevel, logFormat, metrics     string
		maps                             []string
		quiet                            bool
		timeout                          time.Duration
		planning                         planning
	}
}

// Main runs skomer with the process's arguments and streams and returns the exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[0], os.Args[1:], os.Stdout, os.Stderr)
}

// Run runs one command and returns its exit code.
func Run(ctx context.Context, args []string, out, errs io.Writer) int {
	return run(ctx, "skomer", args, out, errs)
}

func run(ctx context.Context, self string, args []string, out, errs io.Writer) int {
	a := &app{self: self, out: out, err: errs, env: processEnvironment(), cancel: func() {}}
	defer func() { a.cancel() }()
	defer a.closeTables()
	root := a.root()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.started && fault.ClassOf(err) == fault.Unclassified {
		err = fault.Wrap(fault.Invalid, "", err)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Canceled
	}
	if err != nil {
		printError(errs, err, a.flags.output == "json" || slices.Contains(args, "--output=json"))
	}
	return exitCode(err)
}

const longRoot = `Skomer answers selective filters on Apache Iceberg tables that somebody else owns.

It builds small indexes beside a table, never inside it, and reads a few pages instead of every file. Delete the indexes and
every answer stays the same; only the cost changes.

TABLE is catalog.namespace.table, namespace.table (with a default catalog), or the place of a table folder or a
metadata.json. Catalogs and the overlay root are read from skomer.yaml; catalogs also from .pyiceberg.yaml.

Exit codes: 0 ok · 1 no match (with --exit-code) · 2 usage · 3 not found · 4 denied · 5 damaged, unsupported or refused ·
6 conflict · 7 limit reached · 8 unhealthy, or a server gave no answer · 130 interrupted. With -o json an error is one JSON object on standard error.`

const exampleRoot = `  skomer demo
  skomer query lake/flights --where "origin = 'JFK' AND delay > 600"
  skomer mount lake/flights && skomer index add lake/flights 'bloom(flight_id)' && skomer sync lake/flights
  skomer explain lake/flights --where "flight_id = '7CBWH4K3'"`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "skomer", Short: "An open index layer for Apache Iceberg tables", Long: longRoot, Example: exampleRoot,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.start(cmd) },
	}
	root.SetFlagErrorFunc(badFlag)
	p := root.PersistentFlags()
	p.StringVar(&a.flags.config, "config", "", "configuration file (default $SKOMER_CONFIG, ./skomer.yaml, ~/.config/skomer/skomer.yaml, /etc/skomer/skomer.yaml)")
	p.StringVar(&a.flags.catalog, "catalog", "", "catalog of names that do not start with one (default: default-catalog)")
	p.StringVar(&a.flags.overlay, "overlay", "", "where the table's indexes are (default <overlay-root>/<table uuid>)")
	p.StringVarP(&a.flags.output, "output", "o", "table", "format of the answer: "+strings.Join(render.Formats(), ", "))
	p.StringArrayVar(&a.flags.maps, "map", nil, "FROM=TO: read paths that start with FROM at TO instead; repeatable")
	p.BoolVarP(&a.flags.quiet, "quiet", "q", false, "no progress and no hints on standard error")
	p.StringVar(&a.flags.logLevel, "log-level", "warn", "what is logged on standard error: debug, info, warn, error")
	p.StringVar(&a.flags.logFormat, "log-format", "text", "format of the log: text, json")
	p.StringVar(&a.flags.metrics, "metrics-listen", "", "serve Prometheus metrics at this address while the command runs, such as :9464")
	p.Var((*age)(&a.flags.timeout), "timeout", "give up after this long, such as 30s (default: never)")
	root.AddCommand(
		a.mountCommand(), a.unmountCommand(), a.describeCommand(), a.statusCommand(),
		a.indexCommand(), a.syncCommand(), a.repairCommand(), a.scrubCommand(), a.reindexCommand(),
		a.consolidateCommand(), a.vacuumCommand(), a.eraseCommand(), a.overlayCommand(),
		a.queryCommand(), a.explainCommand(), a.verifyCommand(), a.statsCommand(), a.estimateCommand(), a.adviseCommand(),
		a.inspectCommand(), a.doctorCommand(), a.demoCommand(), a.versionCommand(),
	)
	return root
}

func (a *app) start(cmd *cobra.Command) error {
	if err := render.CheckFormat(a.flags.output); err != nil {
		return err
	}
	a.started = true
	if a.flags.timeout > 0 {
		ctx, cancel := context.WithTimeout(cmd.Context(), a.flags.timeout)
		a.cancel = cancel
		cmd.SetContext(ctx)
	}
	return nil
}

// takes checks the number of arguments; what names them for the error. A negative most is no bound.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		return fault.New(fault.Invalid, subject(cmd), "takes %s, got %d arguments", what, len(args)).
			WithFix("%s --help", cmd.CommandPath())
	}
}

// subject is a command as errors name it.
func subject(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "skomer ") }

// document refuses output formats that only rows have.
func (a *app) document() error {
	if a.flags.output == "table" || a.flags.output == "json" {
		return nil
	}
	return fault.New(fault.Invalid, "--output", "this command has no rows to write as %s", a.flags.output).WithFix("use table or json")
}

// client reads the configuration, once.
func (a *app) client() (*skomer.Client, error) {
	if a.made != nil {
		return a.made, nil
	}
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	a.made, err = skomer.New(config)
	return a.made, err
}

func (a *app) config() (config skomer.Config, err error) {
	s, err := loadSettings(a.flags.config, a.env)
	if err != nil {
		return config, err
	}
	config = skomer.Config{Catalogs: s.catalogs, DefaultCatalog: s.DefaultCatalog, OverlayRoot: s.OverlayRoot, OverlayKey: s.OverlayKey, OverlayStore: s.OverlayStore}
	if a.flags.catalog != "" {
		config.DefaultCatalog = a.flags.catalog
	}
	config.ShadowShare, a.erasing = s.ShadowChecks, s.Erase
	if err := s.Planning.apply(&config); err != nil {
		return config, err
	}
	if err := a.flags.planning.apply(&config); err != nil {
		return config, err
	}
	if config.Log, err = a.logger(); err != nil {
		return config, err
	}
	config.Metrics, err = a.serveMetrics()
	return config, err
}

// tableOptions are those that flags state.
func (a *app) tableOptions() (skomer.TableOptions, error) {
	options := skomer.TableOptions{Overlay: a.flags.overlay}
	for _, m := range a.flags.maps {
		from, to, ok := strings.Cut(m, "=")
		if !ok || from == "" {
			return options, fault.New(fault.Invalid, "--map", "%q is not FROM=TO", m)
		}
		options.Map = append(options.Map, skomer.Mapping{From: from, To: to})
	}
	return options, nil
}

// open reads the metadata of a table.
func (a *app) open(ctx context.Context, name string) (*skomer.Table, error) {
	options, err := a.tableOptions()
	if err != nil {
		return nil, err
	}
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	return a.opened(client.Open(ctx, name, options))
}

// reported opens the table of a command that answers with a document and not with rows.
func (a *app) reported(ctx context.Context, name string) (*skomer.Table, error) {
	if err := a.document(); err != nil {
		return nil, err
	}
	return a.open(ctx, name)
}

// closeTables waits for what their last commits left to be written.
func (a *app) closeTables() {
	for _, t := range a.tables {
		t.Close()
	}
	a.tables = nil
	for _, end := range a.atEnd {
		end()
	}
	a.atEnd = nil
}

// opened remembers to close a table.
func (a *app) opened(t *skomer.Table, err error) (*skomer.Table, error) {
	if err == nil {
		a.tables = append(a.tables, t)
	}
	return t, err
}

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Version is set by the build.
var Version = "unknown"

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: takes(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if err := a.document(); err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(map[string]string{"version": Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			a.say("skomer %s (%s, %s/%s)", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
