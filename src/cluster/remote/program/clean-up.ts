/** Ends commands, deletes what they leave, and tells what is there. */
export const CLEAN_UP = `
cancel() {
  dir="$base/$D_ID"
  bury || [ -e "$dir/never" ] || ! [ -d "$dir" ] && { echo 'k 0'; return; }
  # Again where the record has just taken the place of the empty directory.
  true 2>/dev/null > "$dir/cancelled" || true > "$dir/cancelled"
  left=$(slay "$dir" "$D_ID" "$D_GRACE")
  set -- $left
  echo "k $# $left"
}

remove() {
  exact
  for D_ID in $D_ID; do
    dir="$base/$D_ID"
    # What tells a late request that it comes too late has to outlive it.
    [ -d "$dir" ] && ! [ -e "$dir/never" ] || { echo "g $D_ID"; continue; }
    # Claimed, but not written down yet: whoever is about to finds that it is not to start.
    if ! [ -e "$dir/index" ]; then
      true 2>/dev/null > "$dir/never"
      [ -e "$dir/index" ] || { echo "g $D_ID"; continue; }
    fi
    true 2>/dev/null > "$dir/cancelled"
    left=$(slay "$dir" "$D_ID" 0)
    if [ -n "$left" ]; then echo "k $D_ID $left"; continue; fi
    s= b= t=
    read -r s b t _ 2>/dev/null < "$dir/super"
    n=0
    while same "$s" "$b" "$t" && [ "$n" -lt 50 ]; do sleep 0.05 2>/dev/null || sleep 1; n=$((n + 1)); done
    same "$s" "$b" "$t" && kill -KILL "$s" 2>/dev/null
    chmod -R u+rwX "$dir/work" 2>/dev/null
    rm -rf "$dir" && echo "g $D_ID"
  done
}

# Workspaces, by their names: what a machine of ours is on a node.
release() {
  exact
  for d in $D_BAR; do dir="$base/$d" && bury; done
  for D_ID in $D_ID; do released; done
  find "$base" -maxdepth 2 -name never -mtime +0 2>/dev/null | while read -r d; do rm -rf "\${d%/never}"; done
  find "$base" -maxdepth 1 -name '.spare.*' -mtime +0 2>/dev/null | while read -r d; do rm -rf "$d"; done
}

released() {
  for d in "$base/$D_ID".*/ "$base/$D_ID"/; do
    [ -d "$d" ] || continue
    d=\${d%/}
    left=$(D_ID=\${d##*/} && remove)
    case $left in k*) echo "$left"; return ;; esac
  done
  [ -d "$work/$D_ID" ] && chmod -R u+rwX "$work/$D_ID" 2>/dev/null
  rm -rf "$work/$D_ID" "$work/$D_ID.base" "$work/$D_ID.stamp" && echo "g $D_ID"
}

claims() {
  for dir in "$work"/*/; do
    dir=\${dir%/}
    case $dir in *.base) continue ;; esac
    [ -d "$dir" ] && echo "w \${dir##*/} $(modified "$dir")"
  done
}

list() {
  for dir in "$base"/*/; do
    dir=\${dir%/}
    [ -d "$dir" ] && ! [ -e "$dir/never" ] || continue
    code= s= b= t= state=running from=0 to=0
    read -r code 2>/dev/null < "$dir/exit"
    read -r s b t _ 2>/dev/null < "$dir/super"
    clock
    if [ -n "$code" ]; then state=ended; elif ! same "$s" "$b" "$t"; then state=lost; fi
    echo "j \${dir##*/} $state \${from:-0}"
  done
}
`
