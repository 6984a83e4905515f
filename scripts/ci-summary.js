#!/usr/bin/env node
// Adds up the JSON reports of several test runs, and fails for failures and for skips that nobody allowed.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const directory = process.argv[2] ?? '.cache/ci'
const allowed = readFileSync(new URL('../.ci/may-skip', import.meta.url), 'utf8')
  .split('\n')
  .filter(line => line.trim() !== '' && !line.startsWith('#'))
  .map(line => new RegExp(line))

const say = text => process.stdout.write(`${text}\n`)
const total = { passed: 0, failed: 0, skipped: 0 }
let wrong = 0

for (const file of readdirSync(directory).filter(name => name.endsWith('.json'))) {
  const run = file.replace(/\.json$/, '')
  const report = JSON.parse(readFileSync(join(directory, file), 'utf8'))
  const tests = report.testResults.flatMap(suite => suite.assertionResults)
  const skipped = tests.filter(test => ['pending', 'skipped', 'todo', 'disabled'].includes(test.status))
  // An ordinary user may lack what root has; there the reasons are only listed.
  const missed = run === 'user' ? [] : skipped.filter(test => !allowed.some(rule => rule.test(test.fullName)))
  const broken = report.testResults.filter(
    suite => suite.status === 'failed' && suite.assertionResults.length === 0,
  )
  total.passed += report.numPassedTests
  total.failed += report.numFailedTests + broken.length
  total.skipped += skipped.length
  wrong += report.numFailedTests + broken.length + missed.length
  say(`${run}: ${report.numPassedTests} passed, ${report.numFailedTests} failed, ${skipped.length} skipped`)
  for (const suite of broken) say(`  did not run: ${suite.name}: ${suite.message.split('\n')[0]}`)
  for (const test of tests.filter(({ status }) => status === 'failed')) {
    say(`  failed: ${test.fullName}`)
    for (const message of test.failureMessages)
      say(message.split('\n').slice(0, 12).join('\n').replace(/^/gm, '    '))
  }
  for (const test of missed) say(`  skipped, but should run here: ${test.fullName}`)
}

say(`\nTests  ${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
process.exitCode = wrong === 0 && total.passed > 0 ? 0 : 1
