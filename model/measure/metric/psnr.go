package metric

import "math"

// MaxPSNR is the PSNR reported for a mean squared error of 1e-10 or less, instead of infinity for an exact reconstruction.
const MaxPSNR = 100.0

// PSNR is the peak signal-to-noise ratio in dB of one image in [0, 1] with mean squared error mse over H, W and C.
//
//	−10 log₁₀ max(mse, 1e-10)            0.01 → 20 dB, 1e-4 → 40 dB
func PSNR(mse float64) float64 {
	return -10 * math.Log10(math.Max(mse, 1e-10))
}

// MeanPSNR is the mean of the PSNRs of single images, as reported by Hsu et al., not the PSNR of the mean error.
func MeanPSNR(mse []float64) float64 {
	sum := 0.0
	for _, e := range mse {
		sum += PSNR(e)
	}
	return sum / float64(len(mse))
}
