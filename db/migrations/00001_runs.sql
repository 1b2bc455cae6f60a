-- +goose Up
-- One row per run folder with the contents of config.json, run.json and state.json. Times are milliseconds since 1970, NULL if none.
CREATE TABLE runs (
    key               INTEGER PRIMARY KEY,
    id                TEXT    NOT NULL UNIQUE,
    name              TEXT    NOT NULL,
    notes             TEXT    NOT NULL,
    config            TEXT    NOT NULL, -- JSON
    created           INTEGER,
    state             TEXT    NOT NULL,
    step              INTEGER NOT NULL,
    checkpoint        INTEGER NOT NULL,
    resumed           INTEGER NOT NULL,
    attempt           INTEGER NOT NULL,
    pid               INTEGER NOT NULL,
    engine            TEXT    NOT NULL,
    engine_why        TEXT    NOT NULL,
    parameters        INTEGER NOT NULL,
    images_per_second REAL    NOT NULL,
    seconds_left      REAL    NOT NULL,
    started           INTEGER,
    updated           INTEGER,
    ended             INTEGER,
    reason            TEXT    NOT NULL,
    revision          TEXT    NOT NULL
) STRICT;

-- +goose Down
DROP TABLE runs;
