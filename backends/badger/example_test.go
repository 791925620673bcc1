package badger_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentvfs/avfs/backends/badger"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// A program embeds the engine with this back end alone: it makes a store, keeps a file in
// a vault, forks the vault, and asks what differs.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "avfs-example-")
	must(err)
	defer os.RemoveAll(dir)

	db, err := badger.Driver{}.Open(ctx, filepath.Join(dir, "project.avfs"), kv.Options{Tables: engine.Tables(), Create: true})
	must(err)
	store, err := engine.Create(ctx, db, nil) // engine.Open for one that exists
	must(err)
	defer func() { must(store.Close()) }() // closes db, too

	main, err := store.CreateVault(ctx, "main")
	must(err)
	_, err = main.WriteFile(ctx, "/greeting", strings.NewReader("hello\n"), nil)
	must(err)

	task, err := store.Fork(ctx, "main", "task")
	must(err)
	_, err = task.WriteFile(ctx, "/greeting", strings.NewReader("hello, world\n"), nil)
	must(err)
	root, err := task.Commit(ctx, true) // durably
	must(err)

	before, _ := task.ForkPoint()
	changes, _, err := store.Diff(ctx, before, root, nil)
	must(err)
	for _, c := range changes {
		fmt.Println(c.Kind, c.Path)
	}
	text, err := fs.ReadFile(main.FS(ctx), "greeting")
	must(err)
	fmt.Printf("main still says %s", text)
	// Output:
	// modified greeting
	// main still says hello
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
