import type { Completable } from './script.ts'

export const zsh = (commands: readonly Completable[]): string => {
  const names = commands.map(({ name, summary }) => `    ${quote(`${name}:${summary}`)}`)
  const cases = commands.map(({ name, words, flags }) => {
    const options = flags.map(flag => {
      const value = flag.takesValue
        ? `:value:${flag.choices.length > 0 ? `(${flag.choices.join(' ')})` : '_files'}`
        : ''
      return quote(`*--${flag.name}[${flag.summary.replace(/[[\]:]/g, '')}]${value}`)
    })
    const first = words.length > 0 ? quote(`1:what:(${words.join(' ')})`) : ''
    return `    ${name}) _arguments ${[...options, first, quote('*::rest:_files')].filter(Boolean).join(' ')} ;;`
  })
  return `#compdef deputy
_deputy() {
  local -a commands=(
${names.join('\n')}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
${cases.join('\n')}
  esac
}
if [[ $funcstack[1] == _deputy ]]; then _deputy "$@"; else compdef _deputy deputy; fi
`
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
