/**
 * Variables that decide where a program sends its requests, whom it trusts, or what code it runs. With one of them a
 * manifest could send an agent's token to another host.
 */
const REDIRECTING = [
  /^ANTHROPIC_(?!.*_MODEL$|MODEL$)/,
  /^CLAUDE_.*(URL|HOST|SOCKET|DIR|PROXY|CERT|SHELL|USE_)/,
  /(^|_)(BASE_URL|API_BASE|API_URL|API_HOST|ENDPOINT|ENDPOINT_URL|PROXY|PROXY_URL)$/i,
  /^(LD|DYLD|BUN|OPENSSL|PYTHON|PERL5|RUBY)_?[A-Z0-9_]+$/,
  /^NODE_(OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED|USE_.*)$/,
  /^(SSL_CERT_FILE|SSL_CERT_DIR|SSLKEYLOGFILE|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE)$/,
  /^(PATH|HOME|SHELL|ENV|BASH_ENV|XDG_CONFIG_HOME|HOSTALIASES|RES_OPTIONS|LOCALDOMAIN|GCONV_PATH|GLIBC_TUNABLES)$/,
]

export const redirectingVariable = (names: readonly string[]): string | undefined =>
  names.find(name => REDIRECTING.some(pattern => pattern.test(name)))
