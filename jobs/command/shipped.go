package command

import (
	"strings"

	"slotscope/model/folder"
	"slotscope/model/shipped"
)

// placeShipped adds the named runs that ship with the program to the data folder, if they were never added before. Names are ID, ID@STEP or
// ID@best. So commands find these runs even if no server has used the folder; a run that the user deleted is not restored.
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
