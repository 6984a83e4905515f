# Deletes copies of trees below ~/.cache/deputy/$1/trees: those that were not used for more than $2 days, and the least
# recently used while all together have more than $3 KiB. Copies that were used within the last hour stay.
cd "$HOME/.cache/deputy/$1/trees" || exit 0
sweep() {
  for used in */used; do
    [ -n "$(find "$used" -mtime "+$1")" ] && rm -rf "${used%/used}"
  done
  sum=$(du -sk . | awk '{print $1}')
  # The names of copies are hashes.
  # shellcheck disable=SC2012
  ls -1tr ./*/used | while read -r used; do
    [ "$sum" -gt "$2" ] || break
    [ -n "$(find "$used" -mmin -60)" ] && continue
    size=$(du -sk "${used%/used}" | awk '{print $1}')
    rm -rf "${used%/used}"
    sum=$((sum - size))
  done
}
sweep "$2" "$3" </dev/null >/dev/null 2>&1 &
