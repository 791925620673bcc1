SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The tag fuse3 chooses libfuse 3, which Linux alone has.
TAGS ?= $(if $(filter Linux,$(shell uname -s)),fuse3)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
PREFIX ?= /usr/local
# What one package's tests may take, race detector and a busy machine included.
TIMEOUT ?= 50m
BENCH ?= .
BENCHFLAGS ?=
BENCHTIME ?= 1s
FUZZTIME ?= 10s

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

GO_BUILD := go build -trimpath -tags '$(TAGS)' -ldflags '-X main.release=$(VERSION)'
GO_TEST := go run ./scripts/testreport -tags '$(TAGS)' -timeout $(TIMEOUT) -count 1

.PHONY: help
help: ## Print the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 14

.PHONY: demo
demo: deps-demo build ## Install what is missing, build, and run a real task in a fork of this repository
	@scripts/demo bin/avfs

.PHONY: build
build: deps-build ## Build bin/avfs
	@mkdir -p bin
	$(GO_BUILD) -o bin/ ./cmd/avfs

.PHONY: test
test: deps format vet ## Install what is missing and run the tests: the short forms under the race detector, then all in full
	$(GO_TEST) -race -short ./...
	$(GO_TEST) ./...

.PHONY: test-short
test-short: deps format vet ## The same without the long tests and the race detector
	$(GO_TEST) -short ./...

.PHONY: format
format: ## Fail where a file is not as gofmt writes it
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not gofmt'ed:" $$bad >&2; exit 1; fi

.PHONY: vet
vet: ## Vet the code with and without the tag fuse3
	go vet -tags '$(TAGS)' ./...
	CGO_ENABLED=0 go vet ./...

.PHONY: lint
lint: deps ## Run staticcheck
	go run $(STATICCHECK) -tags '$(TAGS)' ./...

.PHONY: tags
tags: deps ## Build and vet every set of tags and systems
	scripts/tags

.PHONY: ci
ci: ## Exactly what CI runs
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory tags
	@$(MAKE) --no-print-directory test

.PHONY: bench
bench: deps deps-bench build ## Compare back ends, and mounts with other file systems; writes bench/RESULTS.md (BENCHFLAGS='-short -only mount')
	go run -tags '$(TAGS)' ./bench/cmd/benchreport -avfs bin/avfs $(BENCHFLAGS)

.PHONY: benchmarks
benchmarks: deps ## Run the Go benchmarks (BENCH=regexp BENCHTIME=1s)
	go test -tags '$(TAGS)' -timeout $(TIMEOUT) -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

.PHONY: fuzz
fuzz: deps ## Fuzz every target for a while (FUZZTIME=10s)
	TAGS='$(TAGS)' FUZZTIME=$(FUZZTIME) scripts/fuzz

.PHONY: transcript
transcript: deps ## Write what commands print in README.md and docs anew
	go test -tags '$(TAGS)' -count 1 -run 'TestTranscript|TestExitCodes|TestPages' ./scripts -update

.PHONY: sdk-types
sdk-types: build ## Write the parts of the SDKs anew that are made of the contract
	go run ./sdk/gen -avfs bin/avfs

.PHONY: install
install: build ## Install bin/avfs and its manual page below PREFIX (/usr/local)
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 755 bin/avfs '$(DESTDIR)$(PREFIX)/bin/avfs'
	install -d '$(DESTDIR)$(PREFIX)/share/man/man1'
	bin/avfs man > '$(DESTDIR)$(PREFIX)/share/man/man1/avfs.1'

.PHONY: deps
deps: ## Install what the tests need
	@scripts/install-deps test

.PHONY: deps-demo
deps-demo: ## Install what the demo needs
	@scripts/install-deps demo

.PHONY: deps-bench
deps-bench: ## Install the file systems that mounts are compared with, where that is possible
	@scripts/install-deps bench || echo 'the report will name what is missing' >&2

.PHONY: deps-build
deps-build: ## Install what a build and a mount need
	@scripts/install-deps build

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin
