import { defineConfig } from 'vite'

/** Builds the console as one script and one style sheet with content hashes in their names, served at /web/. */
export default defineConfig({
  base: '/web/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    assetsDir: '',
    // Assets as data: would need to be allowed by the content security policy.
    assetsInlineLimit: 0,
    // The chunks that the first script imports are fetched with it, not after it.
    modulePreload: { polyfill: false },
    target: 'es2022',
  },
})
