package command

import (
	"strings"

	"slotscope/model/folder"
	"slotscope/model/shipped"
)

// placeShipped puts those of the runs that the program ships into the data folder that are named, by ID, ID@STEP or ID@best, and
// were never put there: a command knows them whether or not a server has worked on the folder. One that its owner deleted stays gone.
func placeShipped(dataDir string, names ...string) error {
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i], _, _ = strings.Cut(name, "@")
	}
	if !shipped.Has(ids) {
		return nil
	}
	root, err := folder.Root(dataDir)
	if err != nil {
		return err
	}
	defer root.Close()
	return shipped.PlaceNamed(root, ids)
}
