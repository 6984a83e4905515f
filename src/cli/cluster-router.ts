#!/usr/bin/env node
import { runMain } from './run-main.ts'

await runMain(['cluster', ...process.argv.slice(2)])
