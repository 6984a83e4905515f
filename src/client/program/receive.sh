# receive.sh PATH: unpacks the tar on stdin below PATH if it is a directory, else beside it. Says which in the first line.
case $1 in /*) path=$1 ;; *) path=./$1 ;; esac
case $path in */) mkdir -p "$path" || exit 1 ;; esac
if [ -d "$path" ]; then echo directory; else
  path=$(dirname "$path")
  mkdir -p "$path" || exit 1
  echo new
fi
exec tar -xpof - -C "$path"
