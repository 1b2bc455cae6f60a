#!/bin/bash
# Compares the training and decoding speed with another program in pairs of short runs, one right after the other, so that both
# see the same load on the machine:
#
#   tools/bench-pairs.sh [-p preset] [-b batch] [-n rounds] [-s seconds] [-t precision] -- PEER...
#
# PEER is a command that prints one line of JSON with "images_per_second" of training and "decode_ms" of one image; PRESET, BATCH,
# SECONDS and PRECISION in it are replaced. Prints every round, then the medians, including that of the rounds' ratios. The precision
# is float32 unless given; one image is decoded in float32.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=tiny batch=64 rounds=5 seconds=5 precision=float32
while getopts p:b:n:s:t: option; do
	case $option in
	p) preset=$OPTARG ;; b) batch=$OPTARG ;; n) rounds=$OPTARG ;; s) seconds=$OPTARG ;; t) precision=$OPTARG ;;
	*) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
peer=("${@//PRESET/$preset}") && peer=("${peer[@]//BATCH/$batch}") && peer=("${peer[@]//SECONDS/$seconds}") && peer=("${peer[@]//PRECISION/$precision}")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go build -o "$folder/slotscope" .

field() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p" | head -n 1; }
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

printf '%-8s %12s %12s %8s   %12s %12s %8s\n' round images/s peer ratio 'decode ms' peer ratio
for round in $(seq "$rounds"); do
	images=$("$folder/slotscope" bench train --engine cpu --preset "$preset" --batch "$batch" --seconds "$seconds" --precision "$precision" --json | field images_per_second)
	other=$("${peer[@]}")
	decode=$("$folder/slotscope" bench decode --engine cpu --preset "$preset" --seconds 1 --json | field decode_ms)
	echo "$round $images $(field images_per_second <<<"$other") $decode $(field decode_ms <<<"$other")" |
		awk '{ print $1, $2, $3, $2 / $3, $4, $5, $5 / $4 }' | tee -a "$folder/rounds" |
		awk '{ printf "%-8s %12.1f %12.1f %8.2f   %12.3f %12.3f %8.2f\n", $1, $2, $3, $4, $5, $6, $7 }'
done
columns=()
for column in 2 3 4 5 6 7; do
	columns+=("$(awk -v c=$column '{ print $c }' "$folder/rounds" | median)")
done
printf '%-8s %12.1f %12.1f %8.2f   %12.3f %12.3f %8.2f\n' median "${columns[@]}"
