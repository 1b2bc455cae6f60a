package input

import (
	"fmt"

	"slotscope/model/measure/metric"
)

// extraJSON is the optional content of a .json file besides its table:
//
//	"udr": {"models": [[[0.5, 1], …], …], "kl": [[1.5, 0], …]}   latents of several models on the same rows
//	"loss_capacity": [{"capacity": [1, 2], "loss": [0.5, 0], "baseline": 0.75}]
//	"selections": [{"latents": [0, 2], "factors": [1]}]
type extraJSON struct {
	UDR struct {
		Models [][][]cell  `json:"models"`
		KL     [][]float64 `json:"kl"`
	} `json:"udr"`
	Curves     []metric.Curve     `json:"loss_capacity"`
	Selections []metric.Selection `json:"selections"`
}

// extra converts it into columns; models have codes if the table does.
func (e extraJSON) extra(codes bool) (metric.Extra, error) {
	out := metric.Extra{Curves: e.Curves, Selections: e.Selections}
	if kl := len(e.UDR.KL); kl > 0 && kl != len(e.UDR.Models) {
		return out, fmt.Errorf("udr: kl has %d lists for %d models; give one list per model", kl, len(e.UDR.Models))
	}
	for a, rows := range e.UDR.Models {
		m, err := matrixOf(fmt.Sprintf("udr: model %d", a), rows)
		if err == nil {
			err = m.check()
		}
		if err == nil && codes {
			err = m.checkCodes()
		}
		if err != nil {
			return out, err
		}
		var one metric.Model
		for j := range m.cols {
			if codes {
				one.Codes = append(one.Codes, whole(m.column(j)))
			} else {
				one.Values = append(one.Values, m.column(j))
			}
		}
		if len(e.UDR.KL) > 0 {
			one.KL = e.UDR.KL[a]
		}
		out.Models = append(out.Models, one)
	}
	return out, nil
}
