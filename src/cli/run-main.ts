/** Chooses between the two programs in this package: the bridge of MCP clients and the command line of people. */
export const runMain = async (argv: readonly string[]): Promise<void> => {
  // Clients start the bridge often and wait for it, so it loads without anything of the rest.
  if (isBridge(argv)) {
    const { runBridge } = await import('../mcp/bridge.ts')
    runBridge({ env: process.env, argv: argv.slice(1) })
    return
  }
  const { runCli } = await import('./run-cli.ts')
  await runCli(argv)
}

const isBridge = ([command, ...rest]: readonly string[]): boolean =>
  command === 'mcp' &&
  !rest.some(word => word === 'install' || word === 'uninstall' || word === '--help' || word === '-h')
