export type Child = Node | string | number | null | undefined | false

interface Props {
  readonly on?: { readonly [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => void }
  readonly [attribute: string]: unknown
}

/** Builds an element. Text stays text: nothing a job prints can become markup. */
export const h = <Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  { on = {}, ...attributes }: Props = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] => {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    element.setAttribute(name, value === true ? '' : String(value))
  }
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener as EventListener)
  element.append(...children.filter(isShown).map(child => (child instanceof Node ? child : String(child))))
  return element
}

const isShown = (child: Child): child is Node | string | number =>
  child !== null && child !== undefined && child !== false

export const show = (place: Element, ...children: readonly Child[]): void =>
  place.replaceChildren(
    ...children.filter(isShown).map(child => (child instanceof Node ? child : String(child))),
  )
