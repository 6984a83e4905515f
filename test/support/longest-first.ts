import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that take longer than their size shows, most of them because they run a suite of another file. */
const LONG = [
  'integration/runner/program.test.ts',
  'integration/providers/ssh.test.ts',
  'integration/providers/proxmox.test.ts',
  'integration/providers/sandbox-provider.test.ts',
  'integration/providers/containment.test.ts',
]

/** Vitest starts large files first. A long one that starts last would run alone at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification) => LONG.some(path => moduleId.endsWith(path))
    return [...sorted.filter(isLong), ...sorted.filter(file => !isLong(file))]
  }
}
