import type { Completable } from './script.ts'

export const bash = (commands: readonly Completable[]): string => {
  const cases = commands.map(({ name, words, flags }) => {
    const options = flags.map(flag => `--${flag.name}`).join(' ')
    return `    ${name}) words='${words.join(' ')}'; flags='${options}' ;;`
  })
  const values = commands.flatMap(({ name, flags }) =>
    flags
      .filter(flag => flag.choices.length > 0)
      .map(
        flag =>
          `    ${name}:--${flag.name}) COMPREPLY=($(compgen -W '${flag.choices.join(' ')}' -- "$word")); return ;;`,
      ),
  )
  return `_deputy() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]} words='' flags=''
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${commands.map(({ name }) => name).join(' ')}' -- "$word"))
    return
  fi
  case "$command:$before" in
${values.join('\n')}
  esac
  case "$command" in
${cases.join('\n')}
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  elif ((COMP_CWORD == 2)) && [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  fi
}
complete -o default -F _deputy deputy
`
}
