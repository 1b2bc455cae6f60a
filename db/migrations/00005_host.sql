-- +goose Up
-- The machine that a run's process is on.
ALTER TABLE runs ADD COLUMN host TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE runs DROP COLUMN host;
