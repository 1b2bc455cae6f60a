package cpu

// ThreadsEnv names the environment variable that overrides the number of workers.
const ThreadsEnv = "SLOTSCOPE_THREADS"
