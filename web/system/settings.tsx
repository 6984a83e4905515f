import { deputy } from '../deputy.ts'
import { Problem } from '../parts.tsx'
import { useFetch } from '../use-fetch.ts'

/** Every setting with its origin. They are changed in the file. */
export const Settings = () => {
  const { data, problem } = useFetch(deputy.config)
  return (
    <section class="card">
      <details>
        <summary>
          <h2>Settings</h2>
        </summary>
        <Problem error={problem.value} />
        <dl class="settings">
          {data.value?.map(({ path, value, origin }) => (
            <div key={path}>
              <dt>
                <code>{path}</code>
              </dt>
              <dd>
                <code>{JSON.stringify(value) ?? 'not set'}</code> <span class="soft">{origin}</span>
              </dd>
            </div>
          ))}
        </dl>
      </details>
    </section>
  )
}
