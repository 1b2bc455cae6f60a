package kernel

/*
#include "program.h"
*/
import "C"

// Op is an element-wise operation of a program. Unless stated otherwise, it takes and returns floats, and returns NaN if an operand
// is NaN.
type Op int32

// The operations. Comparisons return a mask: true or false.
const (
	Copy     Op = C.OP_COPY // of a float or a mask
	Neg      Op = C.OP_NEG
	Abs      Op = C.OP_ABS
	Sign     Op = C.OP_SIGN // −1, 1, or the operand if it is a zero
	Exp      Op = C.OP_EXP
	Expm1    Op = C.OP_EXPM1
	Log      Op = C.OP_LOG
	Log1p    Op = C.OP_LOG1P
	Sqrt     Op = C.OP_SQRT
	Rsqrt    Op = C.OP_RSQRT
	Tanh     Op = C.OP_TANH
	Logistic Op = C.OP_LOGISTIC
	Erf      Op = C.OP_ERF
	Sin      Op = C.OP_SIN
	Cos      Op = C.OP_COS
	Floor    Op = C.OP_FLOOR
	Ceil     Op = C.OP_CEIL
	Round    Op = C.OP_ROUND     // ties to even
	IsFinite Op = C.OP_IS_FINITE // returns a mask
	Not      Op = C.OP_NOT       // of a mask
	ToFloat  Op = C.OP_TO_FLOAT  // 1 where a mask is true, 0 elsewhere
	ToMask   Op = C.OP_TO_MASK   // true where a float is not 0

	RoundBF16 Op = C.OP_ROUND_BF16 // to the nearest of 8 significant bits and any exponent of float32, ties to even

	Add Op = C.OP_ADD
	Sub Op = C.OP_SUB
	Mul Op = C.OP_MUL
	Div Op = C.OP_DIV
	Max Op = C.OP_MAX
	Min Op = C.OP_MIN
	Pow Op = C.OP_POW
	Rem Op = C.OP_REM // of the division truncated towards 0, with the sign of the dividend
	And Op = C.OP_AND // of masks
	Or  Op = C.OP_OR
	Xor Op = C.OP_XOR

	Equal        Op = C.OP_EQUAL // of floats, as are the other comparisons; each returns a mask
	NotEqual     Op = C.OP_NOT_EQUAL
	Greater      Op = C.OP_GREATER
	GreaterEqual Op = C.OP_GREATER_EQUAL
	Less         Op = C.OP_LESS
	LessEqual    Op = C.OP_LESS_EQUAL

	Select Op = C.OP_SELECT // the second operand where the first, a mask, is true, else the third
	Clamp  Op = C.OP_CLAMP  // min(max(second, first), third): lower bound, value, upper bound
	FMA    Op = C.OP_FMA    // first·second + third; rounded once if the processor supports it
)

// Operands returns the number of operands of an operation.
func (op Op) Operands() int {
	switch {
	case op < Copy || op > FMA:
		return 0
	case op < Add:
		return 1
	case op < Select:
		return 2
	}
	return 3
}

// kind is the kind of a value of a program.
type kind uint8

const (
	float kind = iota
	mask
	either
)

// takes returns the required kind of operand i.
func (op Op) takes(i int) kind {
	switch {
	case op == Copy || op == Select && i > 0:
		return either
	case op == Not || op == ToFloat || op >= And && op <= Xor || op == Select:
		return mask
	}
	return float
}

// gives returns the kind of an operation's result for operands of these kinds.
func (op Op) gives(operands []kind) kind {
	switch {
	case op == Copy:
		return operands[0]
	case op == Select:
		return operands[1]
	case op == IsFinite || op == Not || op == ToMask || op >= And && op <= LessEqual:
		return mask
	}
	return float
}

// cost returns the approximate time of a block, in additions.
func (op Op) cost() int {
	switch op {
	case Exp, Expm1, Log, Tanh, Logistic, Erf, Sin, Cos:
		return 8
	case Log1p:
		return 16
	case Pow, Rem:
		return 100
	case Div, Sqrt, Rsqrt:
		return 3
	}
	return 1
}
