import type { Completable } from './script.ts'

export const fish = (commands: readonly Completable[]): string => {
  const lines = commands.flatMap(({ name, summary, words, flags }) => [
    `complete -c deputy -n __fish_use_subcommand -f -a ${name} -d ${quote(summary)}`,
    ...(words.length > 0
      ? [`complete -c deputy -n '__fish_seen_subcommand_from ${name}' -f -a ${quote(words.join(' '))}`]
      : []),
    ...flags.map(flag =>
      [
        `complete -c deputy -n '__fish_seen_subcommand_from ${name}' -l ${flag.name}`,
        flag.short === undefined ? '' : ` -s ${flag.short}`,
        flag.takesValue ? ' -r' : '',
        flag.choices.length > 0 ? ` -f -a ${quote(flag.choices.join(' '))}` : '',
        ` -d ${quote(flag.summary)}`,
      ].join(''),
    ),
  ])
  return `${lines.join('\n')}\n`
}

const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
