/** Arguments of a bare sandbox, the floor of ours. The command follows them after `--`. */
export const BARE_BWRAP: readonly string[] = [
  ...'--unshare-all --unshare-user --uid 1000 --gid 1000 --new-session --die-with-parent'.split(' '),
  ...'--cap-drop ALL --clearenv --ro-bind /usr /usr'.split(' '),
  ...'--symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64'.split(' '),
  ...'--proc /proc --dev /dev --tmpfs /tmp --tmpfs /work --chdir /work'.split(' '),
]
