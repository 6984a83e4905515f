import { useSignal } from '@preact/signals'
import { ComparePage } from './compare/page.tsx'
import { isConnected } from './deputy.ts'
import { JobPage } from './job/page.tsx'
import { JobsPage } from './jobs/page.tsx'
import { useKeys } from './keys.ts'
import { lazy } from './lazy.tsx'
import { Login } from './login.tsx'
import { OverviewPage } from './overview/page.tsx'
import { Palette } from './palette.tsx'
import { Dialog } from './parts.tsx'
import { ReviewPage } from './review/page.tsx'
import { go, place } from './router.ts'
import { session } from './session.ts'
import { SystemPage } from './system/page.tsx'

const PAGES = [
  { path: '', title: 'Overview', hash: '#/' },
  { path: 'jobs', title: 'Jobs', hash: '#/jobs' },
  { path: 'new', title: 'New job', hash: '#/new' },
  { path: 'system', title: 'System', hash: '#/system' },
] as const

const SubmitPage = lazy(() => import('./submit/page.tsx'), <h1>New job</h1>)
const TerminalPage = lazy(() => import('./terminal/page.tsx'), <h1>Terminal</h1>)

export const App = () => (session.value === undefined ? <Login /> : <Console />)

const Console = () => {
  const isHelpOpen = useSignal(false)
  const isPaletteOpen = useSignal(false)
  const [first = '', id] = place.value.path
  useKeys({
    '?': () => {
      isHelpOpen.value = true
    },
    'Ctrl k': () => {
      isPaletteOpen.value = true
    },
    n: () => go('#/new'),
    o: () => go('#/'),
    l: () => go('#/jobs'),
    '/': () => {
      const search = document.querySelector<HTMLInputElement>('input[type=search]')
      if (search === null) go('#/jobs')
      else search.focus()
    },
  })
  return (
    <>
      <button type="button" class="skip" onClick={skipToContent}>
        Skip to content
      </button>
      <header class="top">
        <a class="brand" href="#/">
          Deputy
        </a>
        <nav aria-label="Pages">
          {PAGES.map(({ path, title, hash }) => (
            <a key={path} href={hash} aria-current={path === first ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <button
          type="button"
          class="quiet go-to"
          onClick={() => {
            isPaletteOpen.value = true
          }}
        >
          Go to… <kbd>Ctrl K</kbd>
        </button>
        <button
          type="button"
          class="quiet help"
          aria-label="Keyboard help"
          onClick={() => {
            isHelpOpen.value = true
          }}
        >
          ?
        </button>
      </header>
      {!isConnected.value && (
        <p class="lost" role="status">
          The daemon does not answer. This page goes on when it does.
        </p>
      )}
      <main id="content" tabIndex={-1}>
        <Page first={first} id={id} />
      </main>
      <Dialog
        isOpen={isHelpOpen.value}
        label="Keyboard"
        onClose={() => {
          isHelpOpen.value = false
        }}
      >
        <Help />
      </Dialog>
      <Dialog
        isOpen={isPaletteOpen.value}
        label="Go to"
        onClose={() => {
          isPaletteOpen.value = false
        }}
      >
        <Palette
          onClose={() => {
            isPaletteOpen.value = false
          }}
        />
      </Dialog>
    </>
  )
}

const Page = ({ first, id }: { first: string; id: string | undefined }) => {
  if (first === 'jobs') return id === undefined ? <JobsPage /> : <JobPage key={id} id={id} />
  if (first === 'review' && id !== undefined) return <ReviewPage key={id} id={id} />
  if (first === 'compare') return <ComparePage key={place.value.query.get('jobs') ?? ''} />
  if (first === 'new') return <SubmitPage key={place.value.query.get('from') ?? ''} />
  if (first === 'terminal' && id !== undefined) return <TerminalPage key={id} />
  if (first === 'system') return <SystemPage />
  return <OverviewPage />
}

/** A link would change the address, which holds the page. */
const skipToContent = (): void => document.querySelector<HTMLElement>('#content')?.focus()

const KEYS = [
  ['Ctrl K', 'go to a page or a job, or do something with this one'],
  ['/', 'search'],
  ['j, k', 'next, previous job'],
  ['Enter', 'open the job'],
  ['x', 'select the job'],
  ['f', 'show or hide the members of a batch'],
  ['o, l, n', 'overview, list of jobs, new job'],
  ['j, k, v, s', 'in a review: next and previous file, viewed, side by side'],
  ['w', 'wrap the lines of a log'],
  ['e', 'go to the first error of a log'],
  ['?', 'this help'],
] as const

const Help = () => (
  <>
    <h2>Keyboard</h2>
    <dl class="keys">
      {KEYS.map(([key, what]) => (
        <div key={key}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
    <form method="dialog" class="bar end">
      <button type="submit">Close</button>
    </form>
  </>
)
