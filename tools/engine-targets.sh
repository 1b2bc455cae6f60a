#!/usr/bin/env bash
# Measures the CPU engine against its targets (docs/measurements/cpu-engine.md) on this machine and prints a table in Markdown: medians
# of alternating rounds and, in parentheses, least to most.
#
#   tools/engine-targets.sh [-n rounds] [-s seconds] [-o program]
#
# 5 rounds and 3 seconds for each measurement by default, about two minutes per round. program is tools/onednn/convolutions.cpp, compiled;
# without it, the comparison with oneDNN is left out. Nothing else should run meanwhile. PROGRAM= names a slotscope binary to measure
# instead of this version.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=5 seconds=3 onednn=
usage() { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
while getopts n:s:o: option; do
	case $option in
	n) rounds=$OPTARG ;; s) seconds=$OPTARG ;; o) onednn=$OPTARG ;;
	*) usage ;;
	esac
done
[ $# -lt "$OPTIND" ] || usage
[[ $rounds =~ ^[1-9][0-9]*$ && $seconds =~ ^[0-9.]+$ ]] || usage
[ -z "$onednn" ] || [ -x "$onednn" ] || { echo "$onednn is not a program" >&2; exit 2; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'cat "$folder/errors" >&2; echo "line $LINENO: a measurement failed" >&2' ERR
touch "$folder/errors"
slotscope=${PROGRAM:-$folder/slotscope}
if [ -n "${PROGRAM:-}" ]; then version=$("$slotscope" version); else
	version=$(git describe --always --dirty)
	go build -o "$slotscope" .
fi

# take NAME VALUE adds a value to a series.
take() {
	[ -n "$2" ] || { echo "no value for $1" >&2; return 1; }
	echo "$2" >>"$folder/$1"
}
divide() { awk -v a="$1" -v b="$2" 'BEGIN { if (a > 0 && b > 0) print a / b }'; }
# of NAME FORMAT prints a series' median and range.
of() {
	sort -g "$folder/$1" | awk -v f="$2" '{ v[NR] = $1 } END {
		m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
		printf f " (" f " to " f ")", m, v[1], v[NR] }'
}
field() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p" | head -n 1; }
train() { "$slotscope" bench train --engine cpu --preset "$1" --batch "$2" --precision "$3" --seconds "$seconds" --json "${@:4}" 2>>"$folder/errors" | field images_per_second; }

# profile NAME PRECISION takes, of a profile of paper, multiplications and additions by definition as a share of the limit in registers,
# the threads' idle share, the time of the first call and that to write a line that two threads have read.
profile() {
	"$slotscope" bench train --engine cpu --preset paper --batch 16 --precision "$2" --seconds "$seconds" --profile 1 >"$folder/profile" 2>>"$folder/errors"
	shared=$(sed -n 's/^64 bytes .* written in \([0-9.]*\) ns.*/\1/p' "$folder/profile") # nothing with one thread
	take shared "${shared:-0}"
	take "$1-first" "$(sed -n 's/.*first call \([0-9]*\) ms.*/\1/p' "$folder/profile")"
	take "$1-idle" "$(sed -n 's/.*(\([0-9]*\)% of them busy).*/\1/p' "$folder/profile" | awk '{ print 100 - $1 }')"
	take "$1-peak" "$(awk '/ executions, each / { wall = $4; for (i = 1; i < NF; i++) if ($i == "on") threads = $(i + 1) }
		/^limits per thread/ { for (i = 1; i < NF; i++) if ($(i + 1) == "GFLOP/s") limit = $i }
		/ (convolution|matrix product)$/ { all += $1 * $6 } END { print 100 * all / wall / threads / limit }' "$folder/profile")"
}

for round in $(seq "$rounds"); do
	echo "round $round of $rounds, $(date +%T)" >&2
	profile float32 float32
	profile bf16 bf16
	for setting in "paper 16" "small 32" "tiny 64"; do
		read -r preset batch <<<"$setting"
		for precision in float32 bf16; do
			ours=$(train "$preset" "$batch" "$precision")
			take "$preset-$precision" "$ours"
			if [ $precision = float32 ]; then float32=$ours; else take "$preset-gain" "$(divide "$ours" "$float32")"; fi
			if [ -n "$onednn" ]; then
				peer=$("$onednn" --preset "$preset" --batch "$batch" --seconds "$seconds" --type "$precision" | field images_per_second)
				take "$preset-$precision-onednn" "$(divide "$ours" "$peer")"
			fi
		done
	done
	for precision in float32 bf16; do
		one=$(train paper 16 $precision --simulate 1)
		for n in 8 16; do
			take "$precision-$n" "$(divide "$(divide "$(train paper 16 $precision --simulate $n)" "$one")" $n)"
		done
	done
	"$slotscope" bench decode --engine cpu --preset paper --seconds "$seconds" --profile 1 >"$folder/profile" 2>>"$folder/errors"
	limit=$(awk '/^limits per thread/ { for (i = 1; i < NF; i++) if ($(i + 1) == "GB/s") print 34 / $5 / $i }' "$folder/profile") # 34 MB of weights, read by all threads
	ms=$("$slotscope" bench decode --engine cpu --preset paper --seconds "$seconds" --json 2>>"$folder/errors" | field decode_ms)
	take decode "$ms"
	take decode-limit "$(divide "$ms" "$limit")"
done

echo "$(date +%F), $(sed -n 's/^model name[ \t]*: //p' /proc/cpuinfo | head -n 1), $(nproc) threads, version $version, $rounds rounds"
echo
echo "| | measured | target |"
echo "|---|--:|--:|"
row() { echo "| $1 | $2 |${3:+ $3} |"; }
row "\`paper\`, batch 16, float32: share of the limit in registers, counting a convolution's definition" "$(of float32-peak '%.0f%%')" "75%"
row "\`paper\`, batch 16: bf16 / float32" "$(of paper-gain %.2f)" "1.4; with AMX 3.5"
row "\`small\`, batch 32: bf16 / float32" "$(of small-gain %.2f)" "with AMX 2"
row "decoding one image of \`paper\`, ms" "$(of decode %.2f)" ""
row "the same / time to read 34 MB from memory" "$(of decode-limit %.1f)" "2"
row "idle share of threads, \`paper\` in float32" "$(of float32-idle '%.0f%%')" "5%"
row "idle share of threads, \`paper\` in bf16" "$(of bf16-idle '%.0f%%')" "5%"
for precision in float32 bf16; do
	row "efficiency of 8 simulated threads, \`paper\` in $precision" "$(of $precision-8 %.2f)" "0.85"
	row "efficiency of 16 simulated threads, \`paper\` in $precision" "$(of $precision-16 %.2f)" "0.85"
done
row "writing 64 bytes that two threads have read, ns" "$(of shared %.1f)" ""
row "first step of \`paper\` in float32, ms" "$(of float32-first %.0f)" "300"
row "first step of \`paper\` in bf16, ms" "$(of bf16-first %.0f)" "300"
for setting in "paper 16" "small 32" "tiny 64"; do
	read -r preset batch <<<"$setting"
	for precision in float32 bf16; do
		row "\`$preset\`, batch $batch, $precision: images/s" "$(of "$preset-$precision" %.0f)" ""
		[ -z "$onednn" ] || row "the same / oneDNN's convolutions alone" "$(of "$preset-$precision-onednn" %.2f)" "1"
	done
done
