#!/bin/sh
# Installs the outside tools of the end-to-end tests, pinned, into .cache/tools and prints that directory. They need
# a newer Node than Deputy does, so they bring their own; nothing of them is a dependency of the package.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) platform=linux-x64 ;;
  Linux-aarch64) platform=linux-arm64 ;;
  *) echo "e2e-tools: no pinned Node for $(uname -s) on $(uname -m)" >&2; exit 1 ;;
esac
packages="node-$platform@22.23.3
@modelcontextprotocol/conformance@0.2.0-alpha.12
@modelcontextprotocol/inspector@2.12.0
@anthropic-ai/claude-code@2.1.325
@anthropic-ai/mcpb@2.1.2"
directory="$root/.cache/tools/$(printf '%s' "$packages" | cksum | cut -d' ' -f1)"
if [ ! -f "$directory/complete" ]; then
  mkdir -p "$directory"
  printf '{"private":true}\n' > "$directory/package.json"
  # shellcheck disable=SC2086 # one argument a package
  npm install --prefix "$directory" --ignore-scripts --no-audit --no-fund --no-save --loglevel=error $packages >&2
  ln -sf "../node-$platform/bin/node" "$directory/node_modules/.bin/node"
  touch "$directory/complete"
fi
printf '%s\n' "$directory"
