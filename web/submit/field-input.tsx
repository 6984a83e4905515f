import { useRef } from 'preact/hooks'
import { type Field, toText, toValue } from './fields.ts'

interface Props {
  readonly field: Field
  readonly value: unknown
  readonly problem: string | undefined
  onChange(value: unknown): void
}

const PLACEHOLDERS: Partial<Record<Field['kind'], string>> = {
  list: 'one a line',
  map: 'NAME=value, one a line',
  json: 'JSON, or text',
}

export const FieldInput = ({ field, value, problem, onChange }: Props) => {
  const { name, kind, help, choices, fallback } = field
  /** Half a JSON text is not a value yet: the box keeps what was typed as long as it means the same. */
  const typed = useRef('')
  const isSame = JSON.stringify(toValue(kind, typed.current)) === JSON.stringify(value)
  const text = isSame ? typed.current : toText(kind, value)
  const shared = {
    id: `field-${name}`,
    name,
    'aria-invalid': problem !== undefined,
    'aria-describedby': `help-${name}`,
  }
  const take = ({ currentTarget }: { currentTarget: { value: string } }): void => {
    typed.current = currentTarget.value
    onChange(toValue(kind, currentTarget.value))
  }
  return (
    <div class="field">
      <label for={shared.id}>{name}</label>
      {kind === 'choice' || kind === 'boolean' ? (
        <select {...shared} value={text} onChange={take}>
          <option value="">{fallback === '' ? 'not set' : `default: ${fallback}`}</option>
          {(kind === 'boolean' ? ['true', 'false'] : choices).map(choice => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      ) : name === 'task' || kind === 'list' || kind === 'map' || kind === 'json' ? (
        <textarea
          {...shared}
          rows={name === 'task' ? 6 : 2}
          spellcheck={false}
          placeholder={name === 'task' ? 'echo hello' : (PLACEHOLDERS[kind] ?? '')}
          value={text}
          onInput={take}
        />
      ) : (
        <input
          {...shared}
          type="text"
          inputMode={kind === 'number' ? 'decimal' : 'text'}
          placeholder={fallback === '' ? '' : `default: ${fallback}`}
          value={text}
          onInput={take}
        />
      )}
      <p id={`help-${name}`} class={problem === undefined ? 'soft' : 'field-problem'}>
        {problem ?? help}
      </p>
    </div>
  )
}
