module github.com/agentvfs/avfs

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0 // cmd/avfs: parses the command line
	github.com/aymanbagabas/go-udiff v0.4.2 // patch, engine: the lines that two texts have in common
	github.com/dgraph-io/badger/v4 v4.9.6 // backends/badger: a database
	github.com/google/jsonschema-go v0.4.3 // cmd/avfs: the schemas of what commands print; proxy, in tests: that of the envelope
	github.com/hanwen/go-fuse/v2 v2.12.1 // gofusefs: the kernel's FUSE protocol
	github.com/hashicorp/golang-lru/v2 v2.0.7 // engine: caches nodes and chunks
	github.com/klauspost/compress v1.20.4 // engine: S2 for chunks; cmd/avfs: compressed archives
	github.com/modelcontextprotocol/go-sdk v1.8.0 // cmd/avfs: the Model Context Protocol
	github.com/ncruces/go-sqlite3 v0.37.0 // backends/sqlite: a database
	github.com/oklog/ulid/v2 v2.1.2 // proxy: ids of executions
	github.com/rogpeppe/go-internal v1.16.0 // cmd/avfs, in tests: runs the scripts
	github.com/schollz/progressbar/v3 v3.19.1 // cmd/avfs: progress of import and export
	github.com/tidwall/btree v1.8.2 // engine: pending changes; engine/kv/memkv: tables
	github.com/ulikunitz/xz v0.5.17 // cmd/avfs: archives that xz has compressed
	github.com/winfsp/cgofuse v1.6.0 // cgofusefs: libfuse
	go.etcd.io/bbolt v1.5.0 // backends/bbolt: a database
	go.yaml.in/yaml/v4 v4.0.0 // policy: the form of the rules
	golang.org/x/sys v0.50.0 // system calls: mounts, locks, processes, attributes
	golang.org/x/term v0.48.0 // cmd/avfs: is it a terminal, and how wide
	mvdan.cc/sh/v3 v3.14.1 // policy: the grammar of the shell
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgraph-io/ristretto/v2 v2.2.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/flatbuffers v25.2.10+incompatible // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/ncruces/go-sqlite3-wasm/v6 v6.5.35401 // indirect
	github.com/ncruces/julianday v1.0.0 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.41.0 // indirect
	go.opentelemetry.io/otel/metric v1.41.0 // indirect
	go.opentelemetry.io/otel/trace v1.41.0 // indirect
	golang.org/x/oauth2 v0.35.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	google.golang.org/protobuf v1.36.7 // indirect
)
