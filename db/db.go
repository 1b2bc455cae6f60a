// Package db stores the index of runs and their points in SQLite. The index is a cache of the run folders and can be rebuilt from
// them.
package db

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"sync"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// DB is the index. Its methods are safe for concurrent use.
type DB struct {
	write *sql.DB // one connection: SQLite allows one writer, and waiting in Go is fair
	read  *sql.DB

	lists sync.Mutex
	known map[string]*decoded // decoded rows of the last list, by run
}

const (
	common  = "_busy_timeout=5000&_foreign_keys=on"
	writing = common + "&_journal_mode=WAL&_synchronous=NORMAL&_txlock=immediate"
	reading = common + "&mode=ro&_query_only=on"
	readers = 4
)

// Open opens the index at path, creates it if it is missing, and migrates it to this version of the program. The error wraps
// syscall.ENOSPC if the disk is full.
func Open(ctx context.Context, path string) (*DB, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the index %s: %w", path, err)
	}
	d, err := open(ctx, (&url.URL{Scheme: "file", Path: full}).String()+"?")
	if err != nil {
		return nil, fmt.Errorf("open the index %s: %w", path, named(err))
	}
	return d, nil
}

// OpenInMemory opens an empty index in memory, which ends with Close: for a full disk.
func OpenInMemory(ctx context.Context) (*DB, error) {
	d, err := open(ctx, "file:/"+rand.Text()+"?vfs=memdb&") // all connections of this process to the name share it
	if err != nil {
		return nil, fmt.Errorf("open an index in memory: %w", err)
	}
	return d, nil
}

// open opens the index at an address that ends where its query continues.
func open(ctx context.Context, address string) (d *DB, err error) {
	d = &DB{}
	if d.write, err = sql.Open("sqlite3", address+writing); err != nil {
		return nil, err
	}
	d.write.SetMaxOpenConns(1)
	if err := migrate(ctx, d.write); err != nil {
		d.write.Close()
		return nil, err
	}
	if err := d.reviewUnknown(ctx); err != nil {
		d.write.Close()
		return nil, err
	}
	if d.read, err = sql.Open("sqlite3", address+reading); err != nil {
		d.write.Close()
		return nil, err
	}
	d.read.SetMaxOpenConns(readers)
	d.read.SetMaxIdleConns(readers)
	return d, nil
}

func migrator(w *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectSQLite3, w, files)
}

// migrate applies the missing migrations, one transaction each.
func migrate(ctx context.Context, w *sql.DB) error {
	if err := w.PingContext(ctx); err != nil {
		return fmt.Errorf("%w (the index is a cache of the run folders; if it is damaged, delete it)", err)
	}
	p, err := migrator(w)
	if err != nil {
		return err
	}
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if have > want {
		return fmt.Errorf("index version %d is newer than %d, the latest this program supports: use a newer program, or delete the index", have, want)
	}
	_, err = p.Up(ctx)
	return err
}

// Close closes both pools after updating the statistics of SQLite's query planner.
func (d *DB) Close() error {
	_, err := d.write.Exec("PRAGMA optimize")
	return errors.Join(err, d.read.Close(), d.write.Close())
}

// Ready returns an error unless the index can be read and written now.
func (d *DB) Ready(ctx context.Context) error {
	err := d.tx(ctx, func(*sql.Tx) error { return nil }) // starts as a writer
	if err == nil {
		err = d.read.PingContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("the index does not respond: %w", err)
	}
	return nil
}

// tx runs do in one write transaction, which is committed only if do returns nil.
func (d *DB) tx(ctx context.Context, do func(*sql.Tx) error) error {
	return within(ctx, d.write, nil, do)
}

// view runs do on a consistent snapshot of the index.
func (d *DB) view(ctx context.Context, do func(*sql.Tx) error) error {
	return within(ctx, d.read, &sql.TxOptions{ReadOnly: true}, do)
}

func within(ctx context.Context, pool *sql.DB, o *sql.TxOptions, do func(*sql.Tx) error) error {
	tx, err := pool.BeginTx(ctx, o)
	if err != nil {
		return named(err)
	}
	defer tx.Rollback() // no effect after Commit
	if err := do(tx); err != nil {
		return named(err)
	}
	return named(tx.Commit())
}
