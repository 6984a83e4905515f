import { describe, expect, it } from 'vitest'
import { begin } from '../../support/begin-engine.ts'
import { until } from '../../support/engine.ts'
import { createScriptedProvider } from '../../support/scripted-provider.ts'

/** A runtime whose machines wait for the cluster, then for `free`, and are called by their details. */
const beginWaiting = async () => {
  let free = (): void => {}
  const freed = new Promise<void>(resolve => {
    free = resolve
  })
  const scripted = createScriptedProvider('remote')
  const provider = Object.assign(scripted, {
    create: async ({ remember, waiting }: Parameters<typeof scripted.create>[0]) => {
      waiting?.('nobody answers')
      waiting?.('nobody answers')
      await freed
      await remember({ node: 'n1' })
    },
  })
  const engine = await begin([provider])
  const { job_id } = await engine.deputy.submit({ task: 'true', runtime: 'remote' }, 'test')
  return { engine, provider, id: job_id, free }
}

describe('the location of a job, and what it waits for', () => {
  it('is reported once while its machine is provisioned, and cleared when the command starts', async () => {
    const { engine, provider, id, free } = await beginWaiting()
    await until(async () => (await engine.deputy.get(id)).progress !== null, 'it tells')
    expect(await engine.deputy.get(id)).toMatchObject({
      status: 'provisioning',
      progress: 'waiting: nobody answers',
    })
    expect(await engine.deputy.get(id)).not.toHaveProperty('where')
    free()
    const run = await provider.started(id)
    expect(await engine.deputy.get(id)).toMatchObject({ status: 'running', progress: null, where: 'n1' })
    expect(await engine.deputy.machines()).toMatchObject([{ job_id: id, where: 'n1' }])
    const told = (await engine.deputy.events(id, {})).filter(event => event.type === 'progress')
    expect(told.map(event => event.data)).toEqual([{ text: 'waiting: nobody answers' }])
    run.finish({ executedOn: { node: 'n2', because: 'it was moved.' } })
    await until(async () => (await engine.deputy.get(id)).status === 'success', 'it ends')
    expect(await engine.deputy.get(id)).toMatchObject({ where: 'n2' })
  })
})
