/** A Markdown table. */
export const table = (heads, rows) => {
  const cells = [heads, ...rows].map(row =>
    row.map(cell => cell.replaceAll('|', '\\|').replaceAll('\n', ' ').trim()),
  )
  const widths = heads.map((_, index) => Math.max(3, ...cells.map(row => row[index].length)))
  const line = row => `| ${row.map((cell, index) => cell.padEnd(widths[index])).join(' | ')} |`
  const [head, ...body] = cells.map(line)
  return [head, line(widths.map(width => '-'.repeat(width))), ...body].join('\n')
}

/** One row for every property of a JSON Schema, inner objects included: name, type, default, meaning. */
export const propertyRows = (schema, options = {}) =>
  rows(schema, '', { depth: 3, computed: {}, meanings: {}, ...options })

const rows = (schema, prefix, options) => {
  const required = new Set(schema.required ?? [])
  return Object.entries(schema.properties ?? {}).flatMap(([key, property]) => {
    const path = `${prefix}${key}`
    const inner = property.type === 'array' ? property.items : property
    const deeper = options.depth > 1 && inner?.properties
    const below = property.type === 'array' ? `${path}[].` : `${path}.`
    const children = deeper ? rows(inner, below, { ...options, depth: options.depth - 1 }) : []
    // A section without a word of its own is told by its settings.
    if (deeper && property.description === undefined && property.type === 'object') return children
    const needed = required.has(key) && property.default === undefined && options.computed[path] === undefined
    const shown = needed && prefix === '' ? `\`${path}\` *` : `\`${path}\``
    return [
      [
        shown,
        typeOf(property),
        defaultOf(property, path, options),
        property.description ?? options.meanings[path] ?? '',
      ],
      ...children,
    ]
  })
}

const typeOf = property => {
  if (property.enum) return property.enum.map(value => `\`${value}\``).join(', ')
  if (property.const !== undefined) return `\`${property.const}\``
  const choices = property.anyOf ?? property.oneOf
  if (choices) return [...new Set(choices.map(typeOf))].join(' or ')
  if (property.type === 'array') return `list of ${typeOf(property.items ?? {})}`
  if (property.additionalProperties && typeof property.additionalProperties === 'object')
    return `map of ${typeOf(property.additionalProperties)}`
  return `${property.type ?? 'any'}${rangeOf(property)}`
}

const rangeOf = ({ minimum, maximum }) => {
  const low = minimum !== undefined && Math.abs(minimum) < Number.MAX_SAFE_INTEGER ? minimum : undefined
  const high = maximum !== undefined && Math.abs(maximum) < Number.MAX_SAFE_INTEGER ? maximum : undefined
  if (low === undefined && high === undefined) return ''
  if (high === undefined) return ` ≥ ${low}`
  return low === undefined ? ` ≤ ${high}` : ` ${low}–${high}`
}

const defaultOf = (property, path, { computed }) => {
  if (computed[path] !== undefined) return computed[path]
  if (property.default === undefined) return ''
  const text = JSON.stringify(property.default)
  return text === '{}' || text === '[]' ? 'none' : `\`${text}\``
}
