package facts

import "github.com/skomerdb/skomer/internal/column"

// RowID and LastUpdated are the columns of row lineage as data files hold them once rows were rewritten (table specification, "Row
// Lineage" and "Reserved Field IDs"). A row that a file holds null for, or that lies in a file without the column, has its file's first
// row id plus its position, and its file's sequence number.
var (
	RowID       = column.Field{ID: 2147483540, Name: "_row_id", Type: column.Of(column.Long)}
	LastUpdated = column.Field{ID: 2147483539, Name: "_last_updated_sequence_number", Type: column.Of(column.Long)}
)
