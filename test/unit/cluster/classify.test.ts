import { describe, expect, it } from 'vitest'
import { classify } from '../../../src/cluster/classify.ts'

describe('a command is offloaded by its first words', () => {
  it.each([
    'make -j8',
    'cd repo && cargo build',
    'npm test',
    'time make',
    'sudo docker build .',
    'FOO=1 gcc -c x.c',
    'go test ./...',
    './gradlew build',
    '/usr/bin/make',
    "bash -c 'cd x; make'",
    'grep -rn x .',
    'echo start; (cd a && pytest -q)',
    'for d in a b; do make -C $d; done',
    'tar czf x.tgz .',
    'cat list | xargs -n1 clang -c',
    'if [ -f Makefile ]; then make; fi',
  ])('%j goes', command => expect(classify(command).place).toBe('offload'))

  it.each([
    'systemctl start nginx',
    'git merge main',
    'git commit -m "latest make build test"',
    'vim args.txt',
    'echo make',
    'ls target',
    'cat Makefile',
    'mkdir build && cd build',
    'test -f x',
    'go version',
    'grep x file',
    'awk "{print}" cargo.txt',
    'echo "cd x && make"',
    'which make',
    '# make\ntrue',
    'uname -a',
    '"unterminated',
    '',
  ])('%j stays', command => expect(classify(command)).toEqual({ place: 'local', because: undefined }))

  it('says which word decided', () => {
    expect(classify('cd repo && cargo build')).toEqual({ place: 'offload', because: 'cargo' })
  })

  it('follows the lists of the user', () => {
    expect(classify('make', { offload: ['terraform apply'] }).place).toBe('local')
    expect(classify('terraform -chdir=x apply', { offload: ['terraform apply'] }).place).toBe('offload')
    expect(classify('make', { local: ['make'] }).place).toBe('local')
    expect(classify('make clean; cargo build', { local: ['make'] }).place).toBe('offload')
  })
})
