/** The environment variables that make programs use the proxy. */
export const proxyEnvironment = (
  url: string,
  entries: readonly string[],
): Readonly<Record<string, string>> => {
  // A machine has its own loopback interface. If loopback is listed, it is the one of this computer, behind the
  // proxy.
  const direct = entries.some(entry => /^(localhost|127\.)/i.test(entry)) ? '' : 'localhost,127.0.0.1'
  return {
    ...Object.fromEntries(
      ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map(name => [name, url]),
    ),
    NO_PROXY: direct,
    no_proxy: direct,
    // Node's fetch reads the proxy variables only with this setting.
    NODE_USE_ENV_PROXY: '1',
  }
}
