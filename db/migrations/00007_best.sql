-- +goose Up
-- The best checkpoint of a run, and the condition that stopped it early.
ALTER TABLE runs ADD COLUMN best INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN best_value REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN early TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE runs DROP COLUMN early;
ALTER TABLE runs DROP COLUMN best_value;
ALTER TABLE runs DROP COLUMN best;
