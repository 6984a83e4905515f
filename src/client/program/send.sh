# send.sh PATH: says in a line what PATH is, then packs it. Messages of tar would end up in the archive.
case $1 in /*) path=$1 ;; *) path=./$1 ;; esac
if [ -d "$path" ]; then
  cd "$path" || exit 1
  echo directory
  exec tar -cf - . 2>/dev/null
fi
[ -f "$path" ] || { echo missing; exit 1; }
cd "$(dirname "$path")" || exit 1
echo file
exec tar -chf - "./$(basename "$path")" 2>/dev/null
