package cpu

// ThreadsEnv is the name of the environment variable that overrides the number of workers.
const ThreadsEnv = "SLOTSCOPE_THREADS"

// SplitProducts in an engine's config lets it compute products of float32 as three products of bfloat16 if that is faster; see BF16x3.
const SplitProducts = "bf16x3"
