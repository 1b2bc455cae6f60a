#!/usr/bin/env bash
# Checks that a static binary is self-contained: with an empty folder as its root it trains 20 steps, serves pages, and decodes.
#
#   tools/chroot-check.sh dist/slotscope-linux-amd64
#
# It needs curl, and root or user namespaces (unshare -r).
set -euo pipefail

binary=${1:?give the binary}
root=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true
  rm -rf "$root"
}
trap finish EXIT

install -Dm755 "$binary" "$root/slotscope"
mkdir -m 1777 "$root/tmp"
inside=(chroot "$root" /slotscope)
[ "$(id -u)" = 0 ] || inside=(unshare -r "${inside[@]}")

"${inside[@]}" version
"${inside[@]}" train --data /data --dataset shapes3d-synthetic --model hrr --preset tiny --steps 20 --engine cpu --set evaluate=none >"$root/train.log" 2>&1 ||
  { cat "$root/train.log"; exit 1; }
run=$(find "$root/data/runs" -mindepth 1 -maxdepth 1 -type d -printf '%f\n')
[ -f "$root/data/runs/$run/checkpoints/step-000000020.safetensors" ] || { echo "no checkpoint at step 20"; exit 1; }
echo "trained 20 steps of $run"

touch "$root/serve.out"
"${inside[@]}" serve --data /data --addr 127.0.0.1:0 --token check >"$root/serve.out" 2>"$root/serve.log" &
server=$!
until url=$(grep -o 'http://127.0.0.1:[0-9]*' "$root/serve.out" | head -n 1) && [ -n "$url" ]; do
  kill -0 "$server" 2>/dev/null || { cat "$root/serve.log"; exit 1; }
  sleep 0.2
done
ask() { curl --silent --show-error --fail --max-time 120 -H 'Authorization: Bearer check' "$@"; }
ask "$url/readyz"
ask "$url/runs/$run" | grep 'Slotscope' >/dev/null
zeros=$(printf '0,%.0s' {1..9})
ask "$url/api/play/$run/decode" -H 'Content-Type: application/json' -d "{\"codes\": [[${zeros%,}]]}" | grep 'data:image/png;base64,' >/dev/null
echo "served and decoded in an empty root"
