# Answers requests for the files of a workspace.

list_files() {
  enter_workspace || return 0
  echo "files workspace=$workspace bytes=rest"
  # An empty record marks a complete list.
  list_details && printf '\0'
  exit 0
}

# The names follow `--`.
read_files() {
  enter_workspace || return 0
  while [ "$1" != -- ]; do shift; done
  shift
  echo "tar workspace=$workspace bytes=rest"
  printf '%s\0' "$@" | pack
  exit 0
}

enter_workspace() {
  cd "$work/$workspace" 2>/dev/null && return
  echo "failed reason='the workspace $workspace is not there'"
  return 1
}
