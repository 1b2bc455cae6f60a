-- +goose Up
-- Points move from one row per value to one blob per 256 steps of a series. They are read again from the run folders.
DROP TABLE points;
DROP TABLE steps;
DROP TABLE spans;
DELETE FROM cursors;
DELETE FROM rewinds;

-- Samples and spans, packed as in block.go and extent.go. The key contains run, level, series and the blob's number, as in key.go, so
-- that blobs read together are adjacent. count is the number of samples in a block of level 0.
CREATE TABLE blobs (
    key   INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    data  BLOB    NOT NULL
) STRICT;

-- +goose Down
DROP TABLE blobs;
DELETE FROM cursors;
DELETE FROM rewinds;
CREATE TABLE steps (
    run  INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    step INTEGER NOT NULL CHECK (step > 0),
    at   INTEGER NOT NULL,
    PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;
CREATE TABLE points (
    run    INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    series INTEGER NOT NULL,
    step   INTEGER NOT NULL,
    value  REAL,
    kind   INTEGER NOT NULL CHECK ((kind = 0) = (value IS NOT NULL)),
    PRIMARY KEY (run, series, step)
) STRICT, WITHOUT ROWID;
CREATE TABLE spans (
    run       INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    series    INTEGER NOT NULL,
    span      INTEGER NOT NULL, -- step / 16
    min       REAL,
    min_step  INTEGER NOT NULL,
    max       REAL,
    max_step  INTEGER NOT NULL,
    last      REAL,
    last_kind INTEGER NOT NULL,
    last_step INTEGER NOT NULL,
    odd_kind  INTEGER NOT NULL,
    odd_step  INTEGER NOT NULL,
    PRIMARY KEY (run, series, span)
) STRICT, WITHOUT ROWID;
