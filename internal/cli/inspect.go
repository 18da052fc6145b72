package cli

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer/internal/cli/inspect"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/store"
)

const longInspect = `Shows what is in a file: a Puffin file of any writer (our bundles, deletion vectors, sketches), an Iceberg manifest or a
manifest list. The format is told by the bytes, not by the name. --deep also reads the bodies of our artifacts and verifies their
checksums. With -o json, lineage records are shown whole. Files in object storage are reached as the default catalog's tables are
(--catalog names another), and below the overlay root as overlays are.`

// store finds the store of a file. Local ones need no configuration.
func (a *app) store(location string) (store.Store, string, error) {
	if !lake.Remote(location) {
		return lake.LocalFiles()(location)
	}
	client, err := a.client()
	if err != nil {
		return nil, "", err
	}
	return client.Storage(location)
}

func (a *app) inspectCommand() *cobra.Command {
	var deep bool
	cmd := &cobra.Command{
		Use: "inspect FILE", Short: "Show what is in a Puffin file or manifest", Long: longInspect,
		Example: `  skomer inspect overlay/5f6b8a52-7d3e-4c8e-9a01-2001f1190701/data/…/….puffin
  skomer inspect lake/flights/metadata/snap-1001.avro -o json
  skomer inspect s3://lake/web/events/metadata/snap-1001.avro`,
		Args: takes(1, 1, "one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			s, key, err := a.store(args[0])
			if err != nil {
				return err
			}
			report, err := inspect.Look(cmd.Context(), s, key, deep)
			if err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(report)
			}
			a.say("%s, %s", report.Format, size(report.Size))
			var tables []table.Writer
			for _, section := range report.Sections() {
				tw := render.Plain()
				tw.AppendHeader(section.Header)
				for _, row := range section.Rows {
					tw.AppendRow(row)
				}
				tables = append(tables, tw)
			}
			return a.blocks(tables...)
		},
	}
	cmd.Flags().BoolVar(&deep, "deep", false, "read and verify the bodies of artifacts too")
	return cmd
}
