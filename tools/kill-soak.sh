#!/usr/bin/env bash
# Repeatedly kills runs and servers at random points. Checks after each that nothing stored is torn and that the state is correct, and
# in the end that every step is exactly once in the file and in the index (TestKillAnything in handlers/e2e).
#
#   tools/kill-soak.sh [KILLS]      1,000 by default; SLOTSCOPE_SEED=N repeats the random choices of an earlier test
#
# Prints the number of kills of each kind, the time, and the seed. The exit status is 0 if all checks pass.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
kills=${1:-1000}
case $kills in *[!0-9]* | "" | 0) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
begin=$SECONDS verdict=0
SLOTSCOPE_KILLS=$kills go test -count 1 -timeout $((kills * 60 + 600))s -v -run '^TestKillAnything$' ./handlers/e2e >"$log" 2>&1 || verdict=$?
grep -o 'SLOTSCOPE_SEED=[0-9]*' "$log" | head -n 1 || true
sed -n 's/.*round [0-9]*, at step [0-9]*: //p' "$log" | sort | uniq -c
echo "$(grep -c 'round [0-9]*, at step' "$log" || true) of $kills kills in $((SECONDS - begin)) s"
if [ "$verdict" != 0 ]; then
  grep -v 'round [0-9]*, at step' "$log" | tail -n 40
  echo "failed"
  exit 1
fi
echo "all checks passed"
