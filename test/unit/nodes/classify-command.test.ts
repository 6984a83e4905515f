import { describe, expect, it } from 'vitest'
import { classify } from '../../../src/nodes/classify-command.ts'

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
    'python3 -m pytest -q',
    'python3.12 -m pytest',
    'poetry run pytest',
    'uv run pytest -x',
    'uv run --group dev -- pytest',
    'poetry run python -m pytest',
    'bundle exec rspec',
    'gcc-12 -c x.c',
    'clang++-15 x.cc',
    'x86_64-linux-gnu-gcc x.c || gcc x.c',
    'zig build',
    'just build',
    'ccache gcc -c x.c',
    'docker build -t ps .',
    'docker run --rm image ps',
    'npm ci',
    'npm run list',
    './manage.py test',
    'rake test',
  ])('%j runs on a node', command => expect(classify(command).place).toBe('offload'))

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
    'mkdir test',
    'grep test file',
    'git checkout test',
    'echo latest',
    'go version',
    'grep x file',
    'awk "{print}" cargo.txt',
    'echo "cd x && make"',
    'which make',
    '# make\ntrue',
    'uname -a',
    'make -v',
    'make --version | head -1',
    'npm --version',
    'npm ls --depth 0',
    'node -v && npm -v',
    'docker ps -a',
    'docker images',
    'sudo docker logs app',
    'docker --version',
    'kubectl get pods',
    'cargo --version',
    'cargo tree',
    'gcc-12 --version',
    'just --list',
    'python3 -m http.server',
    'python3 x.py -m pytest',
    'uv --version',
    'poetry show',
    '"unterminated',
    '',
  ])('%j runs on this computer', command =>
    expect(classify(command)).toEqual({ place: 'local', because: undefined }),
  )

  it.each(['tar tf x.tar', 'find . -name x', 'grep -r x .', 'rg x', 'unzip x.zip'])(
    '%j stays when no directory goes along',
    command => {
      expect(classify(command, {}, false).place).toBe('local')
      expect(classify(command, {}, true).place).toBe('offload')
    },
  )

  it('follows a list of the user for such commands', () => {
    expect(classify('find .', { offload: ['find'] }, false).place).toBe('offload')
  })

  it('returns the pattern that matched', () => {
    expect(classify('cd repo && cargo build')).toEqual({ place: 'offload', because: 'cargo' })
  })

  it('follows the lists of the user', () => {
    expect(classify('make', { offload: ['terraform apply'] }).place).toBe('local')
    expect(classify('terraform -chdir=x apply', { offload: ['terraform apply'] }).place).toBe('offload')
    expect(classify('make', { local: ['make'] }).place).toBe('local')
    expect(classify('make clean; cargo build', { local: ['make'] }).place).toBe('offload')
  })
})
