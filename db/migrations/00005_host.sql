-- +goose Up
-- The machine of a run's process.
ALTER TABLE runs ADD COLUMN host TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE runs DROP COLUMN host;
