/**
 * The schema inside `apidoc.js`, without running it: `const apiSchema = [ … ]\n;` (before PVE 7
 * `var pveapi = [ … ]\n;`) holds pure JSON, followed by the code of the viewer.
 */
export const extractSchema = (source: string): unknown => {
  const start = source.indexOf('[')
  if (start < 0) throw new Error('apidoc.js holds no schema')
  for (let end = source.indexOf('\n;', start); end >= 0; end = source.indexOf('\n;', end + 1)) {
    try {
      return JSON.parse(source.slice(start, end))
    } catch {
      // A "\n;" inside a text of the schema; the next one may be the end.
      if (end - start > 32 * 1024 * 1024) break
    }
  }
  throw new Error('the schema in apidoc.js is not JSON')
}
