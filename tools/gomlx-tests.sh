#!/usr/bin/env bash
# Runs GoMLX's own tests on the CPU engine, one by one, and prints for each package how many pass and which fail.
#
#   tools/gomlx-tests.sh [-b BACKEND] [-t SECONDS] [-m LEAST] [-v FOLDER] [PACKAGE…]
#
#   -b  the backend in GoMLX's notation: cpu (this project's, the default), or go:ops_sequential for the baseline
#   -t  the time limit of one test, 60 s by default; a test that exceeds it fails
#   -m  the number of tests that must pass; with fewer, the exit status is 1
#   -v  a folder for the output of failing tests, one file each
#   packages are patterns below GoMLX's module; by default pkg/core/graph/... pkg/ml/layers/... pkg/ml/train/... pkg/ml/context/...
#
# The module is copied from the module cache to a temporary folder, where it is patched to use this backend; the folder is deleted at
# the end. A test that panics ends its process, so each test runs in its own.
set -euo pipefail
backend=cpu limit=60 least=0 keep='' all=0
while getopts b:t:m:v: option; do
	case $option in
	b) backend=$OPTARG ;;
	t) limit=$OPTARG ;;
	m) least=$OPTARG ;;
	v) keep=$(mkdir -p "$OPTARG" && cd "$OPTARG" && pwd) ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- pkg/core/graph/... pkg/ml/layers/... pkg/ml/train/... pkg/ml/context/...

cd "$(dirname "$0")/.."
gomlx=github.com/gomlx/gomlx
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# copy copies GoMLX to the temporary folder and patches both places that install XLA to use the linked backends instead.
copy() {
	cp -r "$(go list -m -f '{{.Dir}}' $gomlx)" "$work/gomlx"
	chmod -R u+w "$work/gomlx"
	sed -i -e 's|"github.com/gomlx/gomlx/backends/xla"|_ "slotscope/model/compute/cpu"\n\t_ "github.com/gomlx/gomlx/backends/simplego"|' \
		-e 's|xla\.AutoInstall()|error(nil)|' \
		"$work/gomlx/pkg/core/graph/graphtest/graphtest.go" "$work/gomlx/pkg/core/graph/graph_test.go"
	cp go.mod go.sum "$work"
	go mod edit -replace "$gomlx=$work/gomlx" "$work/go.mod"
}

# result runs one test of the binary in $1 and prints pass, skip or fail.
result() {
	local log="$work/log"
	if ! GOMLX_BACKEND=$backend timeout $((limit + 5)) "$1" -test.run "^$2\$" -test.v -test.timeout "${limit}s" >"$log" 2>&1; then
		[ -z "$keep" ] || cp "$log" "$keep/$(basename "$1").$2.txt"
		echo fail
	elif grep -q "^--- SKIP: $2 " "$log"; then
		echo skip
	else
		echo pass
	fi
}

# package runs the tests of one package and prints its result.
package() {
	local name=${1#"$gomlx"/} failed=() passed=0 skipped=0
	local binary="$work/${name//\//_}"
	if ! go test -c -mod=mod -modfile="$work/go.mod" -o "$binary" "$1" 2>"$work/log"; then
		printf '%-40s does not build: %s\n' "$name" "$(tail -1 "$work/log")"
		return
	fi
	cd "$work/gomlx/$name"
	for test in $("$binary" -test.list '^Test' | grep '^Test'); do
		case $(result "$binary" "$test") in
		pass) passed=$((passed + 1)) ;;
		skip) skipped=$((skipped + 1)) ;;
		fail) failed+=("$test") ;;
		esac
	done
	cd - >/dev/null
	all=$((all + passed))
	printf '%-40s %6d %6d %7d %6d  %s\n' "$name" $passed ${#failed[@]} $skipped $((passed + ${#failed[@]} + skipped)) "${failed[*]}"
}

copy
echo "GoMLX's tests on $backend"
printf '%-40s %6s %6s %7s %6s  %s\n' package passed failed skipped total "failing tests"
for pattern in "$@"; do
	for found in $(go list -mod=mod -modfile="$work/go.mod" -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "$gomlx/$pattern"); do
		package "$found"
	done
done
echo "$all tests pass"
[ "$all" -ge "$least" ] || { echo "expected at least $least" >&2; exit 1; }
