package metric

import (
	"math"

	"slotscope/model"
)

// SwapHit says whether a decoded swap gives the picture T that it should. All three are PSNR in dB: of the decoded swap against T; of A's
// reconstruction against A; of A's reconstruction against T.
//
//	PSNR(swap, T) ≥ PSNR(reconstruction, A) − 3 dB            and  PSNR(swap, T) > PSNR(reconstruction, T)
//
// The second keeps a decoder that ignores the swap from hitting wherever the factor moves few pixels.
func SwapHit(swap, reconstruction, before float64) bool {
	return swap >= reconstruction-model.TruthTolerance && swap > before
}

// PSNROf is the ratio in dB of images in [0, 1] against one another.
func PSNROf[A, B float32 | float64](x []A, y []B) float64 { return PSNR(MSE(x, y)) }

// MSE is the mean squared difference of two images of the same size.
func MSE[A, B float32 | float64](x []A, y []B) float64 {
	sum := 0.0
	for i := range x {
		d := float64(x[i]) - float64(y[i])
		sum += d * d
	}
	return sum / math.Max(1, float64(len(x)))
}
