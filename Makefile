# `make demo` and `make test` are all that a newcomer needs. Every target sets up what it needs, below .cache and bin.

GO      ?= go
BIN     := bin/skomer
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GOFILES := $(shell find . -name '*.go' -not -path './.cache/*' -not -path './examples/*') go.mod go.sum

.PHONY: demo test build lint mutate fuzz random life bench interop clean

demo: build ## real flights as an Iceberg table, indexed, queried both ways
	$(BIN) demo

test: ## every test but the long ones; at most ten minutes on two cores once built
	$(GO) test -timeout 10m ./...

build: $(BIN) ## bin/skomer

$(BIN): $(GOFILES)
	$(GO) build -ldflags '-s -w -X github.com/skomerdb/skomer/internal/cli.Version=$(VERSION)' -o $@ ./cmd/skomer

lint: ## the pinned linter, built once into .cache/bin
	scripts/lint

mutate: ## breaks the rule of every known mistake (docs/cases.md) and demands that its test fails; CASE=O07 takes one
	$(GO) run ./scripts/mutate $(CASE)

fuzz: ## every fuzz target; FUZZ_SECONDS for all of them together
	scripts/fuzz

random: ## tests of random cases with new seeds, for RANDOM_SECONDS
	scripts/random

life: ## histories of a table and its overlay, by processes that fail, pause and die; STEPS of them
	SKOMER_LIFE_STEPS=$(or $(STEPS),10000) $(GO) test -count=1 -timeout 30m -run '^TestLifeOfAnOverlay$$' -v .

bench: ## the table of measurements; ROW=n runs one row
	$(GO) run ./bench $(if $(ROW),-row $(ROW))

interop: ## the tests that ask other engines (DuckDB, PyIceberg, Spark, Java), which it sets up, pinned
	scripts/interop

clean:
	rm -rf bin .cache
