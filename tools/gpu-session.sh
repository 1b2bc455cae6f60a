#!/bin/sh
# Measurements for a machine with an NVIDIA GPU, most important first, in parts of at most ten minutes each:
#
#   tools/gpu-session.sh PART... -- OUT
#
#   about     the machine, and the output of `slotscope gpu`
#   start     smoke test: a few steps, then seconds of `bench train`, in every precision
#   speed     images per second compared with PyTorch on the same GPU within the same minute: eager and torch.compile
#   parity    the golden batch of PyTorch's values and gradients on the GPU, in float32 and in TF32 (needs PARITY)
#   train     a whole run, as far as LIMIT allows; repeat until the run has finished
#   eval      the run's evaluation, and its report with tables and figures
#   more      a run of every other model, as far as LIMIT allows
#   cpu       the CPU engine beside it, in OUT/cpu.jsonl: the kernels' tests for bfloat16 (needs KERNEL), float32 and bf16 on two cores in
#             ROUNDS alternating rounds, 1 to all cores, and a profile of each precision; the GPU should be idle
#   summary   OUT/summary.md with all results so far
#   all       each of these once
#
# OUT gets the raw output; DATA the runs, which are large. Nothing is downloaded. Settings from the environment:
#
#   SLOTSCOPE=./slotscope  PYTHON=python3  ENGINE=xla:cuda  PRESET=paper  BATCH=128  STEPS=125000  SECONDS_EACH=20  LIMIT=540
#   DATASET=shapes3d-synthetic  SEED=0  PRECISION=tf32  DATA=OUT/data  PARITY=   (binary of go test -c ./model/paper/ae, beside its testdata)
#   KERNEL=   (binary of go test -c ./model/compute/cpu/kernel)  ROUNDS=5  EVAL=   (flags of eval)
#
# On any machine: ENGINE=cpu PRESET=tiny BATCH=8 STEPS=20 SECONDS_EACH=1 EVAL="--images 200 --pairs 0 --noise 0" tools/gpu-session.sh all -- /tmp/out
set -u

usage() { sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
parts=
while [ $# -gt 0 ] && [ "$1" != -- ]; do parts="$parts $1"; shift; done
if [ $# != 2 ] || [ -z "$parts" ]; then usage; fi
mkdir -p "$2" || exit 1
out=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)

slotscope=${SLOTSCOPE:-./slotscope} python=${PYTHON:-python3} engine=${ENGINE:-xla:cuda} preset=${PRESET:-paper} batch=${BATCH:-128}
steps=${STEPS:-125000} seconds=${SECONDS_EACH:-20} limit=${LIMIT:-540} dataset=${DATASET:-shapes3d-synthetic} seed=${SEED:-0}
precision=${PRECISION:-tf32} data=${DATA:-$out/data} parity=${PARITY:-} kernel=${KERNEL:-} rounds=${ROUNDS:-5}
device=cuda
[ "$engine" = xla:cuda ] || device=cpu
failures=0

# note NAME SECONDS COMMAND... runs a command with a time limit; its output goes to OUT/NAME.txt, its time and status to OUT/log.txt.
note() {
	name=$1 most=$2
	shift 2
	began=$(date +%s)
	echo "== $name: $*" | tee -a "$out/log.txt"
	timeout -s TERM -k 60 "$most" "$@" >"$out/$name.txt" 2>&1
	code=$?
	echo "   status $code after $(($(date +%s) - began)) s" | tee -a "$out/log.txt"
	return $code
}

# must is note that counts a failure.
must() {
	note "$@" || { failures=$((failures + 1)); tail -n 5 "$out/$1.txt"; }
}

bench() { # NAME PRECISION SECONDS
	must "$1" $(($3 + 300)) "$slotscope" bench train --model hrr --preset "$preset" --batch "$batch" --seconds "$3" --engine "$engine" --precision "$2" --json
}

about() {
	note nvidia-smi 60 nvidia-smi
	must gpu 60 "$slotscope" gpu
	must version 60 "$slotscope" version
}

start() {
	must first-steps 300 "$slotscope" train --data "$data" --dataset "$dataset" --preset "$preset" --batch "$batch" --steps 12 --engine "$engine" --name "first steps" --set eval_images=64 --set sample_every=4 --set checkpoint_every=8
	for p in tf32 float32 bf16; do bench "start-$p" $p 5; done
}

speed() {
	for p in tf32 bf16 float32; do
		bench "speed-$p" $p "$seconds"
		note "torch-$p" $((seconds + 200)) "$python" "$here/torch_speed.py" --preset "$preset" --batch "$batch" --seconds "$seconds" --device $device --precision $p
		[ $p = float32 ] || note "torch-compile-$p" $((seconds + 300)) "$python" "$here/torch_speed.py" --preset "$preset" --batch "$batch" --seconds "$seconds" --device $device --precision $p --compile
	done
}

parity() {
	if [ -z "$parity" ]; then
		echo "parity: PARITY is not set; build the test program with: go test -c -o ae.test ./model/paper/ae" | tee "$out/parity.txt"
		return
	fi
	folder=$(cd "$(dirname "$parity")" && pwd) program=$(basename "$parity")
	for p in float32 tf32; do
		must "parity-$p" 300 sh -c "cd '$folder' && SLOTSCOPE_TEST_ENGINE=$engine SLOTSCOPE_TEST_PRECISION=$p './$program' -test.v -test.run 'TestParity|TestBaselineParity'"
	done
}

# run trains a model until LIMIT; OUT/NAME.run has the path of its run folder.
run() { # NAME MODEL
	if [ -s "$out/$1.run" ]; then
		set -- "$1" "$2" --run "$(cat "$out/$1.run")"
	else
		set -- "$1" "$2" --data "$data" --dataset "$dataset" --model "$2" --preset "$preset" --batch "$batch" --steps "$steps" --seed "$seed" --engine "$engine" --set "precision=$precision" --name "$1"
	fi
	name=$1
	shift 2
	began=$(date +%s)
	echo "== $name: train $*" | tee -a "$out/log.txt"
	timeout -s TERM -k 120 "$limit" "$slotscope" train "$@" >>"$out/$name.txt" 2>&1
	code=$?
	echo "   status $code after $(($(date +%s) - began)) s" | tee -a "$out/log.txt"
	[ -s "$out/$name.run" ] || sed -n 's/^run folder: //p' "$out/$name.txt" | head -n 1 >"$out/$name.run"
	folder=$(cat "$out/$name.run")
	for file in config.json state.json scores.json; do [ ! -e "$folder/$file" ] || cp "$folder/$file" "$out/$name-$file"; done
	[ ! -e "$folder/points.jsonl" ] || gzip -c "$folder/points.jsonl" >"$out/$name-points.jsonl.gz"
	case $code in
	0) ;;
	124 | 130 | 143) echo "   time limit reached; the run is saved, repeat the part to resume it" | tee -a "$out/log.txt" ;;
	*) failures=$((failures + 1)); tail -n 3 "$out/$name.txt" ;;
	esac
}

train() { run "hrr-$preset" hrr; }

more() { for model in vqvae qlae betavae betatcvae; do run "$model-$preset" $model; done; }

evaluate() {
	folder=$(cat "$out/hrr-$preset.run" 2>/dev/null)
	[ -n "$folder" ] || { echo "eval: no run yet" | tee -a "$out/log.txt"; return; }
	# shellcheck disable=SC2086 # flags are words
	must eval "$limit" "$slotscope" eval "$folder" --data "$data" --engine "$engine" ${EVAL:-}
	must report 300 "$slotscope" report "$folder" --data "$data" --out "$out/report"
	[ ! -e "$folder/scores.json" ] || cp "$folder/scores.json" "$out/hrr-$preset-scores.json"
}

# one measures the CPU engine on some cores and adds a line to OUT/cpu.jsonl.
one() { # CORES PRESET BATCH PRECISION SECONDS
	result=$(taskset -c "$1" "$slotscope" bench train --preset "$2" --batch "$3" --engine cpu --precision "$4" --seconds "$5" --json 2>>"$out/cpu-errors.txt" | tr -d '\n ')
	[ -z "$result" ] || echo "{\"precision\":\"$4\",${result#?}" >>"$out/cpu.jsonl"
}

cpu() {
	[ -z "$kernel" ] || must cpu-kernels 200 "$kernel" -test.v -test.run 'Half|Split|AMX|BF16'
	note cpu-machine 20 lscpu
	note cpu-choice 60 env CUDA_VISIBLE_DEVICES= "$slotscope" gpu
	cores=$(lscpu -p=CPU,CORE | awk -F, '!/^#/ && !seen[$2]++ { print $1 }') # one of each physical core
	some() { echo "$cores" | head -n "$1" | paste -sd, -; }
	echo "== cpu: bench train, $rounds rounds" | tee -a "$out/log.txt"
	for _ in $(seq "$rounds"); do
		for p in float32 bf16 bf16x3; do one "$(some 2)" "$preset" 16 $p 4; done
		for p in float32 bf16; do one "$(some 2)" small 32 $p 3; done
		for p in float32 bf16; do one "$(some 2)" tiny 64 $p 2; done
	done
	all=$(echo "$cores" | wc -l)
	for p in float32 bf16; do
		for threads in $(printf '%s\n' 1 2 4 8 "$all" | sort -nu); do [ "$threads" -gt "$all" ] || one "$(some "$threads")" "$preset" 16 $p 4; done
		note "cpu-profile-$p" 60 taskset -c "$(some 2)" "$slotscope" bench train --preset "$preset" --batch 16 --engine cpu --precision $p --seconds 4 --profile 40
	done
}

number() { sed -n "s/.*\"$2\": *\([0-9.eE+-]*\).*/\1/p" "$out/$1.txt" 2>/dev/null | head -n 1; }

summary() {
	{
		echo "# One session on $(date -u +%F)"
		echo
		echo "Engine $engine, preset $preset, batch $batch. $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)"
		echo
		echo "| precision | slotscope, images/s | PyTorch eager | PyTorch compiled |"
		echo "|---|---|---|---|"
		for p in tf32 bf16 float32; do
			echo "| $p | $(number "speed-$p" images_per_second) | $(number "torch-$p" images_per_second) | $(number "torch-compile-$p" images_per_second) |"
		done
		echo
		for p in float32 tf32; do
			[ ! -e "$out/parity-$p.txt" ] || echo "Parity in $p: $(grep -c 'relative error' "$out/parity-$p.txt") values, $(tail -n 1 "$out/parity-$p.txt")"
		done
		for state in "$out"/*-state.json; do
			[ -e "$state" ] || continue
			echo "Run $(basename "$state" -state.json): $(sed -n 's/.*"state": *"\([a-z]*\)".*/\1/p' "$state"), step $(sed -n 's/.*"step": *\([0-9]*\).*/\1/p' "$state" | head -n 1), $(sed -n 's/.*"images_per_second": *\([0-9.]*\).*/\1/p' "$state") images/s"
		done
		echo
		echo '```'
		cat "$out/log.txt" 2>/dev/null
		echo '```'
	} >"$out/summary.md"
	cat "$out/summary.md"
}

for part in $parts; do
	case $part in
	about | start | speed | parity | train | more | cpu | summary) $part ;;
	eval) evaluate ;;
	all) about; start; speed; parity; train; evaluate; more; cpu; summary ;;
	*) usage ;;
	esac
done
[ $failures = 0 ] || { echo "$failures commands failed" >&2; exit 1; }
