#!/usr/bin/env node
import { runMain } from './run-main.ts'

await runMain(['mcp', ...process.argv.slice(2)])
