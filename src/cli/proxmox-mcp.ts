#!/usr/bin/env node
import { runFormerServer } from './former-server.ts'

await runFormerServer({ toolsets: 'proxmox-all', dotenv: true })
