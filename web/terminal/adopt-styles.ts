/**
 * Lets xterm.js apply its rules under a content security policy that blocks style elements. Each style element that
 * `work` creates becomes an inert element whose text goes into a constructed style sheet, which the policy allows.
 * Returns the function that removes these sheets.
 */
export const withAdoptedStyles = (work: () => void): (() => void) => {
  const sheets = new Set<CSSStyleSheet>()
  const create = document.createElement.bind(document)
  const createStyle = (): HTMLElement => {
    const sheet = new CSSStyleSheet()
    sheets.add(sheet)
    document.adoptedStyleSheets.push(sheet)
    const element = create('span')
    element.hidden = true
    Object.defineProperty(element, 'textContent', { set: (rules: string) => sheet.replaceSync(rules) })
    return element
  }
  // Shadows the method of the prototype. The option `documentOverride` would not reach every part of xterm.js.
  Object.defineProperty(document, 'createElement', {
    configurable: true,
    value: (name: string) => (name === 'style' ? createStyle() : create(name)),
  })
  try {
    work()
  } finally {
    Reflect.deleteProperty(document, 'createElement')
  }
  return () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter(sheet => !sheets.has(sheet))
  }
}
