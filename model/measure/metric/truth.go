package metric

import (
	"math"

	"slotscope/model"
)

// SwapHit reports whether a decoded swap matches its true image T. All arguments are PSNRs in dB: of the decoded swap against T, of A's
// reconstruction against A, and of A's reconstruction against T.
//
//	PSNR(swap, T) ≥ PSNR(reconstruction, A) − 3 dB            and  PSNR(swap, T) > PSNR(reconstruction, T)
//
// The second condition rejects decoders that ignore the swap, which would otherwise pass if the factor changes few pixels.
func SwapHit(swap, reconstruction, before float64) bool {
	return swap >= reconstruction-model.TruthTolerance && swap > before
}

// PSNROf is the PSNR in dB between two images in [0, 1].
func PSNROf[A, B float32 | float64](x []A, y []B) float64 { return PSNR(MSE(x, y)) }

// MSE is the mean squared difference between two images of the same size.
func MSE[A, B float32 | float64](x []A, y []B) float64 {
	sum := 0.0
	for i := range x {
		d := float64(x[i]) - float64(y[i])
		sum += d * d
	}
	return sum / math.Max(1, float64(len(x)))
}
