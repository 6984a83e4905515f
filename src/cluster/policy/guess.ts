import type { Interpreter } from './interpreter.ts'
import { isJudged } from './rules.ts'
import type { Scope } from './scope.ts'
import { isShell } from './shells.ts'
import { baseName } from './text.ts'
import { isWrapper } from './wrappers.ts'

const MAX_GUESSES = 4
const MAX_SCRIPT = 4096
const MAX_WORDS = 256
const MAX_FOLLOWED = 64

/**
 * Nobody can know every program that runs another. Where the words of one that is not known here would be refused
 * on their own (`firejail rm -rf /`, `tini -- sh -c …`), they are refused behind it as well.
 */
export const guessWords = (interpreter: Interpreter, argv: readonly string[], scope: Scope): void => {
  if (TEXT_ONLY.has(baseName(argv[0]!))) return
  let left = MAX_GUESSES
  const end = Math.min(argv.length, MAX_WORDS)
  const start = HAS_RM.has(baseName(argv[0]!)) && argv[1] === 'rm' ? 2 : 1
  for (let at = start; at < end && left > 0; at++) {
    const name = baseName(argv[at]!)
    if (!isJudged(name) && !isShell(name) && !isWrapper(name) && !RUNNERS.has(name)) continue
    left--
    // `start-stop-daemon --exec /bin/rm -- -rf /`
    const words = argv.slice(argv[at + 1] === '--' ? at + 2 : at + 1, at + MAX_FOLLOWED)
    follow(interpreter, () =>
      interpreter.run([argv[at]!, ...words], scope.fork({ depth: scope.depth + 1 }), ''),
    )
  }
}

/** Options, settings and variables whose names say that their value is run: `--exec`, `core.pager=`, `EDITOR`. */
export const guessOptions = (
  interpreter: Interpreter,
  argv: readonly string[],
  scope: Scope,
  /** The words are followed elsewhere; what remains are settings: `ProxyCommand=…`. */
  settingsOnly = false,
): void => {
  if (TEXT_ONLY.has(baseName(argv[0]!))) return
  const takesScripts = SCRIPTS.has(baseName(argv[0]!))
  const end = Math.min(argv.length, MAX_WORDS)
  for (let at = 1; at < end; at++) {
    const arg = argv[at]!
    if (!/\s/.test(arg)) continue
    const [, name = '', value = ''] = /^([-+]{0,2}[\w.:-]*?)[:]*=([\s\S]*)$/.exec(arg) ?? []
    if (isRunning(name)) guessScript(interpreter, value, scope)
    else if (takesScripts || ESCAPE.test(arg) || (!settingsOnly && isRunning(argv[at - 1]!)))
      guessScript(interpreter, arg, scope)
  }
}

/** A text that may be given to a shell. */
export const guessScript = (interpreter: Interpreter, text: string, scope: Scope): void => {
  const script = text
    .slice(0, MAX_SCRIPT)
    .replace(ESCAPE, '')
    .replace(/^(?:exec|command)=/, '')
  follow(interpreter, () =>
    interpreter.runText(script, scope.fork({ depth: scope.depth + 1, stdin: '', args: [] })),
  )
}

/** Guesses within a guess would multiply. */
const follow = (interpreter: Interpreter, run: () => void): void => {
  if (interpreter.visitor.wary !== true || interpreter.guessing) return
  interpreter.guessing = true
  try {
    run()
  } finally {
    interpreter.guessing = false
  }
}

/** How editors, pagers, debuggers, git and database clients spell "to the shell with the rest". */
export const ESCAPE = /^(?:[-+:]*!|\\!|\.(?:shell|system)\s|(?:shell|exec|spawn)\s)\s*/

const RUNNING =
  /^-{1,2}[cexX]$|command|cmd|exec|(?:^|[^a-z])run|shell|eval|invoke|program|pager|editor|visual|hook|filter|rsh|wrapper|alias|browser|action|-call$|rsync-path|foreach/i

export const isRunning = (name: string): boolean => RUNNING.test(name)

/** Programs that run others, and are neither judged nor taken off. */
const RUNNERS = new Set(['ssh', 'su', 'find', 'xargs', 'eval', 'parallel'])

/** Programs whose words are whole command lines. */
const SCRIPTS = new Set([
  'hyperfine',
  'concurrently',
  'pssh',
  'parallel-ssh',
  'pdsh',
  'ansible',
  'watchexec',
  'tmux',
  'screen',
  'entr',
])

/** Tools with an `rm` of their own, which is about their own things. */
const HAS_RM = new Set(['git', 'hg', 'svn', 'docker', 'podman', 'nerdctl', 's3cmd', 'rclone', 'mc', 'gsutil'])

/** Programs to which words are text, patterns or names, and never a command. */
const TEXT_ONLY = new Set(
  [
    'echo printf true false : test [ ls cat stat file du df touch mkdir basename dirname expr wc',
    'grep egrep fgrep zgrep rg ag ack head tail cut tr sort uniq sed gsed jq yq',
    'which type whereis whatis apropos help history hash kill pkill pgrep killall ps id',
    'alias trap export declare local readonly typeset unset set shift read mapfile readarray',
    'logger wall write mail notify-send say gh glab',
  ].flatMap(names => names.split(' ')),
)
