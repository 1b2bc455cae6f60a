-- +goose Up
-- Alerts of runs, each at most once per attempt. Times are milliseconds since 1970.
CREATE TABLE alerts (
    id      INTEGER PRIMARY KEY AUTOINCREMENT, -- increases even after the newest was deleted with its run
    run     INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    rule    TEXT    NOT NULL,
    step    INTEGER NOT NULL,
    text    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    state   TEXT    NOT NULL, -- of the delivery to the webhook; '' if none
    tries   INTEGER NOT NULL DEFAULT 0,
    sent    INTEGER,
    problem TEXT    NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX alerts_once ON alerts (run, attempt, kind, (CASE kind WHEN 'rule' THEN rule ELSE '' END));
CREATE INDEX alerts_queued ON alerts (id) WHERE state = 'queued';

-- +goose Down
DROP TABLE alerts;
