-- +goose Up
CREATE TABLE series (
    key  INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- One row per point, which ensures that every step is stored once. "at" is the time of measurement in nanoseconds since 1970.
CREATE TABLE steps (
    run  INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    step INTEGER NOT NULL CHECK (step > 0),
    at   INTEGER NOT NULL,
    PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;

-- One row per value. kind is 0 for a finite number; 1 NaN, 2 +Inf and 3 -Inf, with value NULL.
CREATE TABLE points (
    run    INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    series INTEGER NOT NULL,
    step   INTEGER NOT NULL,
    value  REAL,
    kind   INTEGER NOT NULL CHECK ((kind = 0) = (value IS NOT NULL)),
    PRIMARY KEY (run, series, step)
) STRICT, WITHOUT ROWID;

-- One row per sixteen steps of a series, so that a whole long run is drawn from few rows. A step of 0 means none: no finite value
-- for min and max, no non-finite value for odd.
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

-- Progress of storing points.jsonl of each run.
CREATE TABLE cursors (
    run     INTEGER PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE,
    offset  INTEGER NOT NULL,
    mark    INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    head    INTEGER NOT NULL
) STRICT;

-- One row for every time that stored points were dropped; steps up to "keep" were kept.
CREATE TABLE rewinds (
    run     INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    keep    INTEGER NOT NULL,
    PRIMARY KEY (run, attempt)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE rewinds;
DROP TABLE cursors;
DROP TABLE spans;
DROP TABLE points;
DROP TABLE steps;
DROP TABLE series;
