/** The variables by which programs find a proxy. */
export const proxyEnvironment = (
  url: string,
  entries: readonly string[],
): Readonly<Record<string, string>> => {
  // A machine has a loopback of its own; a listed one is that of this computer and lies behind the proxy.
  const direct = entries.some(entry => /^(localhost|127\.)/i.test(entry)) ? '' : 'localhost,127.0.0.1'
  return {
    ...Object.fromEntries(
      ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map(name => [name, url]),
    ),
    NO_PROXY: direct,
    no_proxy: direct,
    // Node's own fetch looks at the others only when asked to.
    NODE_USE_ENV_PROXY: '1',
  }
}
