package report

// SlotChoice is how many slots a dimension asks for: by what can be known without labels, and by what labels say.
type SlotChoice struct {
	Model, Dataset, D string
	ByUDR, ByInfoM    string // values of m with the highest mean
	UDR, InfoM        Scored // of these
	Redundancy        Scored // of pairs of slots, at ByUDR
}

// SlotChoices has one for each dimension where a section varies m and d and both UDR and InfoM are known for two numbers of slots or more.
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

// highest is the row of the highest mean in a column, and in how many rows there is one.
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

// slotHeads and cells are the table of choices in every form of a report.
var slotHeads = []string{"Model", "Dataset", "d", "m by UDR (no labels)", "UDR", "Redundancy of pairs, nats", "m by InfoM (labels)", "InfoM"}

// slotsAbout is the sentence above it.
const slotsAbout = "The number of slots with the highest mean, for each dimension. UDR compares seeds with one another and needs no factors; where both columns name the same number, the choice needed no labels."

func (c SlotChoice) cells() []string {
	redundancy := "–"
	if c.Redundancy.N > 0 {
		redundancy = c.Redundancy.Text(2)
	}
	return []string{ModelLabel(c.Model), DatasetLabel(c.Dataset), c.D, c.ByUDR, c.UDR.Text(2), redundancy, c.ByInfoM, c.InfoM.Text(2)}
}
