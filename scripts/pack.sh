#!/bin/sh
# Makes the npm tarball and the .mcpb bundle of a built checkout in DIRECTORY (default: release) and tries both.
# The bundle contains native code, so it is for the platform that it was made on. With STAGE the directory in which
# both were tried is kept.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
mkdir -p "${1:-$root/release}"
out=$(CDPATH='' cd -- "${1:-$root/release}" && pwd)
stage=${STAGE:-$(mktemp -d)}
[ "${STAGE:-}" ] || trap 'rm -rf "$stage"' EXIT
install="npm install --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error"
mcpb=${MCPB:-npx -y @anthropic-ai/mcpb@2.1.2}
version=$(node -p 'require(process.argv[1]).version' "$root/package.json")

# Runs a program as a new user would.
try() {
  home=$(mktemp -d "$stage/home.XXXXXX")
  [ "$(DEPUTY_HOME=$home "$@" --version)" = "$version" ]
  if DEPUTY_HOME=$home "$@" doctor >"$home/doctor" 2>&1; then
    [ "$(DEPUTY_HOME=$home DEPUTY_HTTP=false "$@" run -- echo packed)" = packed ]
  else
    echo 'No runtime is ready on this computer, so no job was tried.' >&2
  fi
  DEPUTY_HOME=$home "$@" daemon stop >&2
}

tarball=$(cd "$root" && npm pack --silent --ignore-scripts --pack-destination "$out")
mkdir "$stage/installed"
(cd "$stage/installed" && npm init -y >/dev/null && $install "$out/$tarball" >&2)
try "$stage/installed/node_modules/.bin/deputy"
echo "$out/$tarball"

tar -xzf "$out/$tarball" -C "$stage"
bundle=deputy-$(node -p 'process.platform')-$(node -p 'process.arch').mcpb
# shellcheck disable=SC2016 # a program of Node
node -e '
  const manifest = require(process.argv[1])
  manifest.compatibility.platforms = [process.platform]
  require("node:fs").writeFileSync(process.argv[2], JSON.stringify(manifest, null, 2))
' "$root/mcpb/manifest.json" "$stage/package/manifest.json"
(cd "$stage/package" && $install >&2)
# It checks the manifest first.
$mcpb pack "$stage/package" "$out/$bundle" >&2
$mcpb unpack "$out/$bundle" "$stage/unpacked" >&2
try node "$stage/unpacked/dist/cli/main.js"
echo "$out/$bundle"
