# What is in a workspace, and files of it.

# Records end with NUL. First everything but directories, then an empty record; then what changed since the workspace
# was filled, or the links of the base; then another one, which says that the list is whole.
list_files() {
  enter_workspace || return 0
  echo "files workspace=$workspace bytes=rest"
  if [ "$base" = 1 ]; then
    find . -xdev -type f -print0
    printf '\0'
    find . -xdev -type l -print0
  else
    list_details
    printf '\0'
    newer=-cnewer
    find . -maxdepth 0 -cnewer . > /dev/null 2>&1 || newer=-newer
    [ -e "$work/$workspace.stamp" ] && find . -xdev \( -type f -o -type l \) "$newer" "$work/$workspace.stamp" -print0
  fi
  printf '\0'
  exit 0
}

# TYPE SIZE MODE PATH. With GNU find for every name; other systems lose names with newlines.
list_details() {
  if find . -maxdepth 0 -printf '' 2>/dev/null; then
    find . -xdev ! -type d -printf '%y %s %m %P\0'
  elif stat -c %s . > /dev/null 2>&1; then
    # shellcheck disable=SC2016 # For another shell.
    find . -xdev ! -type d -exec sh -c '
      for f; do
        if [ -L "$f" ]; then t=l; elif [ -f "$f" ]; then t=f; else t=o; fi
        printf "%s %s %s\0" "$t" "$(stat -c "%s %a" "$f")" "${f#./}"
      done' sh {} +
  else
    find . -xdev -type f -exec stat -f 'f %z %Lp %N' {} + | tr '\n' '\0'
    find . -xdev -type l -exec stat -f 'l %z %Lp %N' {} + | tr '\n' '\0'
    find . -xdev ! -type f ! -type l ! -type d -exec stat -f 'o %z %Lp %N' {} + | tr '\n' '\0'
  fi
}

# A tar of the files named after `--`. What tar says against one of them shows by its absence.
read_files() {
  enter_workspace || return 0
  while [ "$1" != -- ]; do shift; done
  shift
  echo "tar workspace=$workspace bytes=rest"
  if tar --version 2>/dev/null | grep -q GNU; then
    printf '%s\0' "$@" | tar --null -T - --no-recursion --hard-dereference -cf - 2>/dev/null
  elif tar --version 2>/dev/null | grep -q bsdtar; then
    printf '%s\0' "$@" | tar --null -T - -n -cf - 2>/dev/null
  else
    printf '%s\0' "$@" | xargs -0 tar -cf - 2>/dev/null
  fi
  exit 0
}

enter_workspace() {
  [ "$base" = 1 ] && suffix=.base || suffix=
  cd "$work/$workspace$suffix" 2>/dev/null && return
  echo "failed reason='the workspace $workspace$suffix is not there'"
  return 1
}
