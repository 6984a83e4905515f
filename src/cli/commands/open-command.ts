import { defineCommand } from '../command.ts'

export default defineCommand({
  usage: '[flags]',
  description: `Opens the console in the browser, logged in, and prints its address. The address works once, within five minutes.
Without a browser on this computer it is only printed. Calls to a Proxmox cluster can be approved in the console when
this command was run on a terminal.`,
  examples: [
    ['deputy open', 'open the console'],
    ['deputy open --no-browser', 'print its address, for another browser on this computer'],
  ],
  flags: { 'no-browser': { type: 'boolean', summary: 'print the address only' } },
  async run(context, { flags }) {
    const url = await (await context.client()).consoleUrl({ mayApprove: process.stdin.isTTY === true })
    await context.print(`${url}\n`)
    if (flags['no-browser']) return 0
    const { openInBrowser } = await import('../open-in-browser.ts')
    const isOpen = await openInBrowser(url, { env: context.env, directory: context.home.stateDir })
    if (!isOpen) await context.err.write('No browser found. Open the address above within five minutes.\n')
    return 0
  },
})
