/** The page around the script of web/. It contains no data: the script requests everything with the token. */
export const SHELL = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Deputy</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/web/style.css">
<script type="module" src="/web/main.js"></script>
</head>
<body>
<header><a href="#/">Deputy</a> <span id="daemon"></span></header>
<main><noscript>This page needs JavaScript. The command line does not: deputy list</noscript></main>
</body>
</html>
`

export const STYLE = `:root {
  --ink: light-dark(#1c2024, #e6e8ea); --soft: light-dark(#60646c, #9ba1a8); --line: light-dark(#dfe2e6, #33373d);
  --paper: light-dark(#fcfcfd, #16181b); --raised: light-dark(#f3f4f6, #1f2226); --link: light-dark(#0b62c4, #7ab8ff);
  --good: light-dark(#18794e, #4cc38a); --bad: light-dark(#c62a2f, #ff8b8d); --busy: light-dark(#9a5b00, #f1b05a);
  color-scheme: light dark;
}
* { box-sizing: border-box }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
header { display: flex; gap: 1rem; align-items: baseline; padding: .6rem 1.2rem; border-bottom: 1px solid var(--line) }
header a { font-weight: 650; color: inherit; text-decoration: none }
header span, small, th, dt { color: var(--soft) }
main { max-width: 72rem; margin: 0 auto; padding: 1rem 1.2rem 4rem }
a { color: var(--link) }
h1 { font-size: 1.15rem; overflow-wrap: anywhere } h2 { font-size: 1rem }
table { width: 100%; border-collapse: collapse }
th, td { text-align: left; padding: .4rem .6rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
th { font-weight: 500; font-size: .85rem } td { white-space: nowrap } td.task { white-space: normal; overflow-wrap: anywhere; width: 50% }
.label { display: inline-block; margin-left: .5rem; padding: 0 .4rem; border: 1px solid var(--line); border-radius: 4px; font-size: .8rem; color: var(--soft) }
.badge { display: inline-block; min-width: 6.2rem; font-size: .85rem; font-weight: 600; color: var(--soft) }
.badge::before { content: "● " } .badge.success { color: var(--good) }
.badge.failed, .badge.timeout { color: var(--bad) } .badge.running, .badge.provisioning { color: var(--busy) }
h1 .badge { min-width: 0 }
.bar { display: flex; gap: .8rem; align-items: center; margin: .8rem 0 }
button, input, select, textarea { font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: 6px; padding: .3rem .7rem }
button { cursor: pointer } button:disabled { opacity: .6; cursor: default } button.link { border: 0; background: none; padding: 0; color: var(--link); text-decoration: underline }
:focus-visible { outline: 2px solid var(--link); outline-offset: 1px }
textarea { width: 100%; font-family: ui-monospace, monospace; font-size: .9rem; resize: vertical }
form.submit { display: grid; gap: .5rem; justify-items: start } form.login { max-width: 32rem; display: grid; gap: .6rem }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: .5rem 1.2rem } dt { font-size: .8rem } dd { margin: 0; overflow-wrap: anywhere }
.output { max-height: 60vh; min-height: 4rem; overflow: auto; margin: 0; padding: .8rem; background: var(--raised); border: 1px solid var(--line); border-radius: 6px; font: .85rem/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere }
.stderr { color: var(--bad) } .gap { color: var(--soft); font-style: italic }
.problem { padding: .5rem .8rem; border-left: 3px solid var(--bad); background: var(--raised) }
`
