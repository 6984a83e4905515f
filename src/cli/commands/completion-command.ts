import { didYouMean } from '../../jobs/nearest.ts'
import { usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'
import { completionScript, SHELLS, type Shell } from '../completion/script.ts'

export default defineCommand({
  usage: 'bash|zsh|fish',
  examples: [
    ['eval "$(deputy completion bash)"', 'bash, for example in ~/.bashrc'],
    ['source <(deputy completion zsh)', 'zsh'],
    ['deputy completion fish > ~/.config/fish/completions/deputy.fish', 'fish'],
  ],
  flags: {},
  words: SHELLS,
  async run(context, { args }) {
    const [shell] = args
    if (!isShell(shell))
      throw usage(
        `Completion exists for ${SHELLS.join(', ')}${shell === undefined ? '' : `, not for '${shell}'`}${didYouMean(shell ?? '', SHELLS) || '.'}`,
        'completion',
      )
    return context.print(completionScript(shell))
  },
})

const isShell = (text: string | undefined): text is Shell => SHELLS.some(shell => shell === text)
