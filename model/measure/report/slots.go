package report

// SlotChoice is the best number of slots for one latent dimension: by UDR, which needs no labels, and by InfoM, which does.
type SlotChoice struct {
	Model, Dataset, D string
	ByUDR, ByInfoM    string // values of m with the highest mean
	UDR, InfoM        Scored // at ByUDR and ByInfoM
	Redundancy        Scored // of pairs of slots, at ByUDR
}

// SlotChoices has one entry for each dimension, if a section varies m and d and at least two values of m have both UDR and InfoM.
func (s Section) SlotChoices() []SlotChoice {
	infom, _ := MetricByKey("infom")
	pairs, _ := MetricByKey("redundancy_pairs")
	byKey := map[string]map[string]Grid{} // model and dataset, then metric
	var order []string
	for _, g := range s.Grids([]Metric{udr, infom, pairs}) {
		if g.RowField.Name != "m" {
			continue
		}
		of := g.Model + "\n" + g.Dataset
		if byKey[of] == nil {
			byKey[of] = map[string]Grid{}
			order = append(order, of)
		}
		byKey[of][g.Metric.Key] = g
	}
	var all []SlotChoice
	for _, of := range order {
		all = append(all, slotChoices(byKey[of][UDRKey], byKey[of]["infom"], byKey[of]["redundancy_pairs"])...)
	}
	return all
}

func slotChoices(agreement, infom, pairs Grid) (all []SlotChoice) {
	for j, d := range agreement.Columns {
		a, known := highest(agreement, j)
		b, alsoKnown := highest(infom, j)
		if known < 2 || alsoKnown < 2 {
			continue
		}
		c := SlotChoice{Model: agreement.Model, Dataset: agreement.Dataset, D: d, ByUDR: agreement.Rows[a], ByInfoM: infom.Rows[b], UDR: agreement.Cells[a][j], InfoM: infom.Cells[b][j]}
		if len(pairs.Cells) > a {
			c.Redundancy = pairs.Cells[a][j]
		}
		all = append(all, c)
	}
	return all
}

// highest is the row with the highest mean in a column, and the number of rows with a value.
func highest(g Grid, column int) (row, known int) {
	for i := range g.Cells {
		if len(g.Cells[i]) <= column || g.Cells[i][column].N == 0 {
			continue
		}
		if known++; known == 1 || g.Cells[i][column].Mean > g.Cells[row][column].Mean {
			row = i
		}
	}
	return row, known
}

// slotHeads are the column headings of the slot choices in every report format; cells are a row.
var slotHeads = []string{"Model", "Dataset", "d", "m by UDR (no labels)", "UDR", "Redundancy of pairs, nats", "m by InfoM (labels)", "InfoM"}

// slotsAbout is the sentence above the slot choices.
const slotsAbout = "The number of slots with the highest mean, for each dimension. UDR compares seeds with each other and needs no factor labels; if both columns agree, labels were not needed for the choice."

func (c SlotChoice) cells() []string {
	redundancy := "–"
	if c.Redundancy.N > 0 {
		redundancy = c.Redundancy.Text(2)
	}
	return []string{ModelLabel(c.Model), DatasetLabel(c.Dataset), c.D, c.ByUDR, c.UDR.Text(2), redundancy, c.ByInfoM, c.InfoM.Text(2)}
}
