-- +goose Up
-- The precision of a run's products where the engine chose it.
ALTER TABLE runs ADD COLUMN precision TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE runs DROP COLUMN precision;
