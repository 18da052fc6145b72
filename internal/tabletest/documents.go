package tabletest

import (
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/skomerdb/skomer/internal/column"
)

// Document is a row of a table of texts, JSON, maps and lists of structs. A nil pointer, map or slice is null.
type Document struct {
	ID      int64              `parquet:"id,id(1)"`
	Message *string            `parquet:"message,optional,id(2)"`
	Payload *string            `parquet:"payload,optional,id(3)"`
	Attrs   map[string]*string `parquet:"attrs,optional,id(4)" parquet-key:",id(5)" parquet-value:",optional,id(6)"`
	Items   []*Item            `parquet:"items,optional,list,id(7)" parquet-element:",optional,id(8)"`
	Level   *int32             `parquet:"level,optional,id(11)"`
}

// Item is an element of a document's items.
type Item struct {
	SKU *string `parquet:"sku,optional,id(9)"`
	Qty *int32  `parquet:"qty,optional,id(10)"`
}

// DocumentSchema is the table's schema.
func DocumentSchema() *column.Schema {
	text := column.Of(column.String)
	item := column.Type{Kind: column.Struct, Fields: []column.Field{{ID: 9, Name: "sku", Type: text}, {ID: 10, Name: "qty", Type: column.Of(column.Int)}}}
	return &column.Schema{Fields: []column.Field{
		{ID: 1, Name: "id", Type: column.Of(column.Long), Required: true},
		{ID: 2, Name: "message", Type: text},
		{ID: 3, Name: "payload", Type: text},
		{ID: 4, Name: "attrs", Type: column.Type{Kind: column.Map, Fields: []column.Field{{ID: 5, Name: "key", Type: text, Required: true}, {ID: 6, Name: "value", Type: text}}}},
		{ID: 7, Name: "items", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 8, Name: "element", Type: item}}}},
		{ID: 11, Name: "level", Type: column.Of(column.Int)},
	}}
}

// WriteDocuments writes rows as a Parquet file. The writer makes empty maps of null ones that end a row group, so that none may.
func WriteDocuments(path string, rows []Document, rowsPerGroup int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := parquet.NewGenericWriter[Document](f, parquet.PageBufferSize(512))
	for group := range slices.Chunk(rows, rowsPerGroup) {
		if _, err := w.Write(group); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}
