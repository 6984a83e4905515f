/**
 * Extracts the schema from `apidoc.js` without running it. `const apiSchema = [ … ]\n;` (before PVE 7
 * `var pveapi = [ … ]\n;`) contains JSON and is followed by the code of the API viewer.
 */
export const extractSchema = (source: string): unknown => {
  const start = source.indexOf('[')
  if (start < 0) throw new Error('apidoc.js contains no schema')
  for (let end = source.indexOf('\n;', start); end >= 0; end = source.indexOf('\n;', end + 1)) {
    try {
      return JSON.parse(source.slice(start, end))
    } catch {
      // This "\n;" is inside a string of the schema; try the next one.
      if (end - start > 32 * 1024 * 1024) break
    }
  }
  throw new Error('the schema in apidoc.js is not JSON')
}
