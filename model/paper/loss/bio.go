package loss

import . "github.com/gomlx/gomlx/pkg/core/graph"

// Nonnegative penalizes negative latents z, [B, m]; its gradient at 0 is 0.
//
//	L_nn = mean_{B,m} max(−z, 0)                 Hsu et al. 2023, after Whittington et al. 2023
func Nonnegative(z *Node) *Node {
	negative := LessThan(z, ScalarZero(z.Graph(), z.DType()))
	return ReduceAllMean(Where(negative, Neg(z), ZerosLike(z)))
}

// Activity returns the mean energy of latents z, [B, m].
//
//	L_act = mean_{B,m} z²                        Hsu et al. 2023, after Whittington et al. 2023
func Activity(z *Node) *Node { return ReduceAllMean(Square(z)) }
