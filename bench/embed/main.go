// Embed is the smallest program that keeps files in a store. Built with one of the
// tags avfs_NAME it has one back end, and its size tells what that back end costs.
//
//	go build -tags avfs_bbolt ./bench/embed
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: embed NEW-STORE")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// run makes a store at path, a vault in it, and a file in that.
func run(ctx context.Context, path string) error {
	driver := backends.All()[0]
	db, err := driver.Open(ctx, path, kv.Options{Tables: engine.Tables(), Create: true})
	if err != nil {
		return err
	}
	store, err := engine.Create(ctx, db, nil)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	return errors.Join(write(ctx, store), store.Close())
}

func write(ctx context.Context, store *engine.Store) error {
	vault, err := store.CreateVault(ctx, "main")
	if err != nil {
		return err
	}
	if _, err := vault.WriteFile(ctx, "hello", strings.NewReader("hello\n"), nil); err != nil {
		return err
	}
	return vault.Sync(ctx)
}
