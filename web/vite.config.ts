import { defineConfig } from 'vite'

/** The console: one script and one style, named by their content, for the daemon to serve at /web/. */
export default defineConfig({
  base: '/web/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    assetsDir: '',
    // Assets as data: would need to be allowed by the content security policy.
    assetsInlineLimit: 0,
    modulePreload: false,
    target: 'es2022',
  },
})
