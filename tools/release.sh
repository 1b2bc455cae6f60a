#!/usr/bin/env bash
# Builds a release into dist/ or another folder:
#
#   tools/release.sh [FOLDER]
#
# Static Linux binaries for amd64 and, if aarch64-linux-gnu-gcc is installed, arm64; a .deb of each with a hardened systemd unit; a
# Containerfile and a compose file; shell completions; the manual page; SHA256SUMS. The version is that of the tag, e.g. v0.2.0, or else
# 0.0.0 and the commit. It needs Go, gcc, and dpkg-deb for the packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${1:-dist}
version=$(git describe --tags --match 'v[0-9]*' --dirty=+dirty 2>/dev/null || echo "v0.0.0-$(git rev-parse --short HEAD)")
version=${version#v}
mkdir -p "$out"
out=$(cd "$out" && pwd)

# build ARCH CC builds one static binary. It uses Go's resolver, because glibc's does not link statically.
build() {
  local arch=$1 compiler=$2
  echo "building slotscope-linux-$arch $version"
  CGO_ENABLED=1 GOOS=linux GOARCH=$arch CC=$compiler go build -trimpath -tags netgo,osusergo,sqlite_omit_load_extension \
    -ldflags "-s -w -X slotscope/jobs/command.Release=$version -linkmode external -extldflags '-static'" \
    -o "$out/slotscope-linux-$arch" .
}

# package ARCH builds the .deb with the binary, the unit, the manual page and the completions.
package() {
  local arch=$1 root
  root=$(mktemp -d)
  install -Dm755 "$out/slotscope-linux-$arch" "$root/usr/bin/slotscope"
  install -Dm644 tools/release/slotscope.service "$root/lib/systemd/system/slotscope.service"
  install -Dm644 "$out/slotscope.1.gz" "$root/usr/share/man/man1/slotscope.1.gz"
  install -Dm644 "$out/completions/slotscope.bash" "$root/usr/share/bash-completion/completions/slotscope"
  install -Dm644 "$out/completions/_slotscope" "$root/usr/share/zsh/vendor-completions/_slotscope"
  install -Dm644 "$out/completions/slotscope.fish" "$root/usr/share/fish/vendor_completions.d/slotscope.fish"
  install -Dm644 LICENSE "$root/usr/share/doc/slotscope/copyright"
  install -Dm644 NOTICE "$root/usr/share/doc/slotscope/NOTICE"
  install -Dm644 /dev/stdin "$root/etc/default/slotscope" <<'DEFAULTS'
# Flags of the service. --open serves every user of this machine. To serve other machines, set an address and a token:
#   SLOTSCOPE_ARGS="--addr 0.0.0.0:8080"
#   SLOTSCOPE_TOKEN=secret
SLOTSCOPE_ARGS="--open"
DEFAULTS
  mkdir -p "$root/DEBIAN"
  cat >"$root/DEBIAN/control" <<CONTROL
Package: slotscope
Version: $(echo "$version" | tr - '~')
Architecture: $arch
Maintainer: Slotscope maintainers <maintainers@localhost>
Section: science
Priority: optional
Installed-Size: $(du -ks "$root" | cut -f1)
Description: Train, evaluate and explore disentangled representations
 Autoencoders with holographic reduced representations and their baselines,
 their metrics, and an interactive playground for swapping slots in a browser.
 .
 "systemctl enable --now slotscope" serves it on http://127.0.0.1:8080.
CONTROL
  echo /etc/default/slotscope >"$root/DEBIAN/conffiles"
  # A running service is stopped before removal and restarted with the new binary after an upgrade.
  install -m755 /dev/stdin "$root/DEBIAN/prerm" <<'PRERM'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl stop slotscope.service || true; fi
PRERM
  install -m755 /dev/stdin "$root/DEBIAN/postinst" <<'POSTINST'
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart slotscope.service || true
fi
POSTINST
  install -m755 /dev/stdin "$root/DEBIAN/postrm" <<'POSTRM'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
POSTRM
  dpkg-deb --root-owner-group --build "$root" "$out/slotscope_${version}_$arch.deb" >/dev/null
  rm -rf "$root"
}

rm -f "$out"/slotscope_*.deb "$out"/SHA256SUMS
build amd64 "${CC:-gcc}"
if command -v aarch64-linux-gnu-gcc >/dev/null; then
  build arm64 aarch64-linux-gnu-gcc
else
  echo "no aarch64-linux-gnu-gcc: no arm64 binary (Debian: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
fi
self=$out/slotscope-linux-$(go env GOHOSTARCH)
mkdir -p "$out/completions"
"$self" completion bash >"$out/completions/slotscope.bash"
"$self" completion zsh >"$out/completions/_slotscope"
"$self" completion fish >"$out/completions/slotscope.fish"
"$self" manual | gzip -9n >"$out/slotscope.1.gz"
cp tools/release/Containerfile tools/release/compose.yaml tools/release/slotscope.service LICENSE NOTICE CHANGELOG.md CITATION.cff "$out"
for binary in "$out"/slotscope-linux-*; do
  if command -v dpkg-deb >/dev/null; then package "${binary##*-}"; else echo "no dpkg-deb: no package"; fi
done
cd "$out"
sums=$(find . -type f ! -name SHA256SUMS -printf '%P\0' | sort -z | xargs -0 sha256sum)
echo "$sums" >SHA256SUMS
ls -lh
