package scan

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/overlay"
)

// exprChanged is why an artifact's values were not made as its index's columns are now, or "".
func exprChanged(a *overlay.ArtifactInfo, columns []column.Path) string {
	for i, path := range columns {
		now, was := "", ""
		if path.Derived() {
			now = path[len(path.Base())].Expr
		}
		if i < len(a.Columns) {
			was = a.Columns[i].Expr
		}
		if now != was {
			return "its values are of " + described(was) + ", those of the index of " + described(now)
		}
	}
	return ""
}

func described(expr string) string {
	if expr == "" {
		return "the column itself"
	}
	return "the expression " + expr
}
