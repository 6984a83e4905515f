import { render } from 'preact'
import { App } from './app.tsx'
import { beginSession } from './session.ts'

void beginSession().finally(() => render(<App />, document.querySelector('#app')!))
