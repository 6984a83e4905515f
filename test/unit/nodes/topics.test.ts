import { describe, expect, it } from 'vitest'
import { topicName, topicsOf } from '../../../src/nodes/topics.ts'

describe('the topics of a command', () => {
  it.each([
    ['cargo build --release', ['cargo', 'build']],
    ['cd repo && sudo -u ci make test', ['cd', 'make', 'build', 'test']],
    ["bash -c 'pytest -q | tee log'", ['bash', 'pytest', 'test', 'tee']],
    ['docker build -t x .', ['docker', 'build', 'containers']],
    ['./gradlew test', ['gradlew', 'build', 'test']],
    ['ollama run llama3', ['ollama', 'inference']],
    ['git commit -m "make test"', ['git']],
    ['echo cargo build', ['echo']],
    ['', []],
  ])('%s', (command, topics) => {
    expect(topicsOf(command).sort()).toEqual([...topics].sort())
  })

  it('include topics of the configuration', () => {
    const lists = { GPU: ['python train.py'], render: ['blender -b'] }
    expect(topicsOf('python -u train.py --epochs 3', lists)).toEqual(
      expect.arrayContaining(['python', 'gpu']),
    )
    expect(topicsOf('blender -b x.blend', lists)).toEqual(['blender', 'render'])
    expect(topicsOf('nvidia-smi', lists)).toEqual(['nvidia-smi'])
  })

  it('map synonyms to one name', () => {
    expect(['Compilation', 'testing', 'docker', 'LLM'].map(topicName)).toEqual([
      ...['build', 'test', 'docker', 'inference'],
    ])
  })
})
