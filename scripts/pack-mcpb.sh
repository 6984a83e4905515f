#!/bin/sh
# Makes deputy.mcpb: the packed product with its production dependencies and the manifest. Needs npm and mcpb.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
out=${1:-$root/deputy.mcpb}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
(cd "$root" && npm pack --silent --pack-destination "$stage" >/dev/null)
tar -xzf "$stage"/deputy-mcp-*.tgz -C "$stage"
cp "$root/mcpb/manifest.json" "$stage/package/manifest.json"
(cd "$stage/package" && npm install --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
${MCPB:-npx -y @anthropic-ai/mcpb@2.1.2} pack "$stage/package" "$out"
