import { useSignal } from '@preact/signals'
import { deputy } from './deputy.ts'
import { Command, Problem } from './parts.tsx'
import { keepSession, loginProblem } from './session.ts'

export const Login = () => {
  const token = useSignal('')
  const logIn = async (event: Event): Promise<void> => {
    event.preventDefault()
    keepSession(token.value.trim())
    // A wrong token ends the session again, with the reason.
    await deputy.daemon().catch(() => {})
  }
  return (
    <main class="login">
      <h1>Deputy</h1>
      <p>Log in from a terminal on the computer where Deputy runs:</p>
      <Command text="deputy open" />
      <Problem error={loginProblem.value} />
      <details>
        <summary>Use a token instead</summary>
        <form onSubmit={event => void logIn(event)}>
          <label for="token">Content of the file “token” in the state directory</label>
          <input
            id="token"
            type="password"
            autocomplete="off"
            required
            value={token.value}
            onInput={event => {
              token.value = event.currentTarget.value
            }}
          />
          <button type="submit" class="primary">
            Log in
          </button>
        </form>
      </details>
    </main>
  )
}
