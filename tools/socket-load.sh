#!/usr/bin/env bash
# Opens many sockets on one live run, every fifth of which never reads, and prints the handshake times, the server's memory, and the
# training speed before, during and after (TestManySockets in handlers/e2e).
#
#   tools/socket-load.sh [SOCKETS]      1,000 by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
sockets=${1:-1000}
case $sockets in *[!0-9]* | "" | 0) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
ulimit -n "$(ulimit -H -n)"
SLOTSCOPE_TESTS=all SLOTSCOPE_SOCKETS=$sockets go test -count 1 -timeout 30m -v -run '^TestManySockets$' ./handlers/e2e | grep -v '^=== '
