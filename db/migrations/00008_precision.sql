-- +goose Up
-- The precision of products in a run's training steps; empty for older runs.
ALTER TABLE runs ADD COLUMN precision TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE runs DROP COLUMN precision;
