/** Names of the rules that the policy brings along; `cluster.policy.disable` takes them. */
export const BUILTIN_RULES = [
  'destroy-root',
  'destroy-system-directory',
  'destroy-home',
  'destroy-system-file',
  'write-device',
  'format-device',
  'recursive-permissions',
  'fork-bomb',
  'download-to-root-shell',
  'nul-byte',
  'too-complex',
] as const
