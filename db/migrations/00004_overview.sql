-- +goose Up
-- Data that lists show of every run without reading its points or its folder.
ALTER TABLE runs ADD COLUMN tags TEXT NOT NULL DEFAULT '';        -- joined by spaces
ALTER TABLE runs ADD COLUMN star INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;

CREATE TABLE overviews (
    run      INTEGER PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE,
    last     TEXT NOT NULL DEFAULT '{}', -- JSON: last value by series
    scores   TEXT NOT NULL DEFAULT '{}', -- JSON: metrics of scores.json by key
    scored   TEXT NOT NULL DEFAULT ''    -- stamp of that scores.json; '' if none
) STRICT;

-- +goose Down
DROP TABLE overviews;
ALTER TABLE runs DROP COLUMN archived;
ALTER TABLE runs DROP COLUMN star;
ALTER TABLE runs DROP COLUMN tags;
