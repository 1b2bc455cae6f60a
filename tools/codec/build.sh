#!/usr/bin/env bash
# Builds the WebAssembly module of the playground from codec.c with Debian's clang and wasm-ld.
#
#   tools/codec/build.sh           build it
#   tools/codec/build.sh --check   build it in a temporary file and compare; skipped if the compiler differs from the recorded one
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

built=../../static/play/codec.wasm
version=$(clang --version 2>/dev/null | head -n 1 && wasm-ld --version 2>/dev/null) || version=""

# compile writes the module to the file $1.
compile() {
  local object
  object=$(mktemp --suffix .o)
  clang --target=wasm32 -std=c11 -O2 -msimd128 -mbulk-memory -ffreestanding -fno-builtin -nostdlib \
    -Wall -Wextra -Werror -c codec.c -o "$object"
  wasm-ld --no-entry --strip-all --gc-sections -z stack-size=65536 "$object" -o "$1"
  rm "$object"
}

if [ "${1:-}" != --check ]; then
  compile "$built"
  printf '%s\n' "$version" >toolchain.txt
  wc -c "$built"
  exit
fi
if [ "$version" != "$(cat toolchain.txt)" ]; then
  printf 'skipped: the module was built with\n%s\nthis machine has\n%s\n' "$(cat toolchain.txt)" "${version:-no clang or wasm-ld}"
  exit
fi
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
compile "$fresh"
cmp "$fresh" "$built" || { echo "codec.wasm is out of date: run tools/codec/build.sh and commit it"; exit 1; }
echo "codec.wasm is up to date with codec.c ($(head -n 1 toolchain.txt))"
