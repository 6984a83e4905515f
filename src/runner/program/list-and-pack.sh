# Lists and packs files of the current directory, for nodes and VMs. In a VM $as_job runs a program as the user of the job.

# TYPE SIZE MODE TIME PATH of everything but directories; each record ends with NUL. Fails when the list is not complete.
# Without GNU find or stat, names with newlines are lost.
list_details() {
  if find . -maxdepth 0 -printf '' 2>/dev/null; then
    $as_job find . -xdev ! -type d -printf '%y %s %m %T@ %P\0'
  elif stat -c %s . > /dev/null 2>&1; then
    # shellcheck disable=SC2016 # Another shell expands it.
    $as_job find . -xdev ! -type d -exec sh -c '
      for f; do
        if [ -L "$f" ]; then t=l; elif [ -f "$f" ]; then t=f; else t=o; fi
        printf "%s %s %s\0" "$t" "$(stat -c "%s %a %Y" "$f")" "${f#./}"
      done' sh {} +
  else
    {
      find . -xdev -type f -exec stat -f 'f %z %Lp %m %N' {} +
      find . -xdev -type l -exec stat -f 'l %z %Lp %m %N' {} +
      find . -xdev ! -type f ! -type l ! -type d -exec stat -f 'o %z %Lp %m %N' {} +
    } | sed 's| \./| |' | tr '\n' '\0'
  fi
} 2>/dev/null

# Reads names that end with NUL, writes a tar of those files. Files that tar cannot read are missing in it.
pack() {
  case $(tar --version) in
    *GNU*) $as_job tar --null -T - --no-recursion --hard-dereference -cf - ;;
    *bsdtar*) $as_job tar --null -T - -n -cf - ;;
    *) $as_job xargs -0 tar -cf - ;;
  esac
} 2>/dev/null
