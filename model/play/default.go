package play

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

//go:embed default
var embedded embed.FS

const (
	defaultFile = "default/default.safetensors"
	defaultCard = "default/default.json"
)

// Card tells how the embedded checkpoint came to be; what is not known is left out.
type Card struct {
	Dataset string             `json:"dataset"`
	Model   string             `json:"model"`
	Preset  string             `json:"preset"`
	Seed    int64              `json:"seed"`
	Steps   int                `json:"steps"`
	Batch   int                `json:"batch"`
	Engine  string             `json:"engine"`
	Machine string             `json:"machine"`
	Minutes float64            `json:"minutes"`
	Program string             `json:"program"` // revision that trained it
	Scores  map[string]float64 `json:"scores"`  // by name with unit, as "psnr/eval (dB)"
	Note    string             `json:"note"`
}

// Default is the embedded checkpoint; model.ErrNotFound is in the chain of a build without one.
func Default() (Source, error) { return defaultSource() }

var defaultSource = sync.OnceValues(func() (Source, error) {
	raw, err := embedded.ReadFile(defaultFile)
	if err != nil {
		return Source{}, fmt.Errorf("this build has no demo model; train a model first: %w", model.ErrNotFound)
	}
	file, err := checkpoint.Decode(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return Source{}, fmt.Errorf("reading the embedded checkpoint: %w", err)
	}
	card, err := readCard()
	if err != nil {
		return Source{}, err
	}
	sum := sha256.Sum256(raw)
	key := hex.EncodeToString(sum[:])[:keyLength]
	return Source{Key: key, Title: "Demo model", Step: file.Step, Config: file.Config, Card: card, embedded: true}, nil
})

func readCard() (*Card, error) {
	raw, err := embedded.ReadFile(defaultCard)
	if err != nil {
		return nil, nil // a checkpoint without a card is still one
	}
	card := new(Card)
	if err := json.Unmarshal(raw, card); err != nil {
		return nil, fmt.Errorf("reading the embedded checkpoint's card: %w", err)
	}
	return card, nil
}

func readDefault() (checkpoint.File, error) {
	raw, err := embedded.ReadFile(defaultFile)
	if err != nil {
		return checkpoint.File{}, fmt.Errorf("reading the embedded checkpoint: %w", err)
	}
	return checkpoint.Decode(bytes.NewReader(raw), int64(len(raw)))
}
